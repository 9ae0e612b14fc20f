//! A sky: objects in small groups near each other, and who is whose neighbour.
//!
//! ```text
//!   photoobjall/part-0.csv ..   objid, mode, type, ra, dec, u, g, r, i, z
//!   neighbors/part-0.csv ..     objid, neighborobjid, distance, mode, neighbormode
//! ```
//!
//! Proportions are those of the survey's tables that the Dryad paper reads: eight neighbours an object, two thirds of the
//! objects primary (mode 1), a pair in ten thousand with the same colours. In the last but one file of objects a few have
//! no magnitude in one band: -9999, as the survey writes it. The same size gives the same sky, as text or as Parquet.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int16Array, Int64Array};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::args::SkyFormat;
use crate::random::Random;

/// Columns of the two tables.
pub(crate) const PHOTOOBJALL: &str =
    "(objid BIGINT, mode SMALLINT, type SMALLINT, ra DOUBLE, dec DOUBLE, u REAL, g REAL, r REAL, i REAL, z REAL)";
pub(crate) const NEIGHBORS: &str =
    "(objid BIGINT, neighborobjid BIGINT, distance DOUBLE, mode SMALLINT, neighbormode SMALLINT)";

/// What the survey's object numbers begin with: they do not fit into 32 bits.
const FIRST_OBJID: i64 = 1_237_648_720_693_755_904;

/// What is written where a magnitude is missing.
const MISSING: f32 = -9999.0;

/// A group of n has n (n - 1) neighbours; between 3 and 13 makes eight an object.
const GROUP_MIN: u64 = 3;
const GROUP_MAX: u64 = 13;

/// One in so many neighbours is an image of the same source.
const LENS_RARITY: u64 = 4_000;

/// How much there is.
pub(crate) struct Size {
    pub(crate) n_objects: u64,
    pub(crate) n_neighbors: u64,
}

struct Object {
    objid: i64,
    mode: i16,
    kind: i16,
    ra: f64,
    dec: f64,
    bands: [f32; 5],
}

struct Neighbor {
    objid: i64,
    neighborobjid: i64,
    distance: f64,
    modes: (i16, i16),
}

/// Writes both tables with about `n_objects` objects below a new folder.
pub(crate) fn generate(folder: &Path, format: SkyFormat, n_objects: u64, n_files: u16) -> Result<Size> {
    for table in ["photoobjall", "neighbors"] {
        fs::create_dir_all(folder.join(table))?;
    }
    let per_file = n_objects.div_ceil(u64::from(n_files)).max(GROUP_MAX);
    let mut size = Size { n_objects: 0, n_neighbors: 0 };
    for file in 0..n_files {
        let (objects, neighbors) = region(file, per_file, file + 2 == n_files);
        size.n_objects += objects.len() as u64;
        size.n_neighbors += neighbors.len() as u64;
        let path = |table: &str| folder.join(table).join(format!("part-{file}.{format}"));
        let write = || match format {
            SkyFormat::Csv => {
                write_lines(&path("photoobjall"), "objid,mode,type,ra,dec,u,g,r,i,z", &objects, Object::line)?;
                let head = "objid,neighborobjid,distance,mode,neighbormode";
                write_lines(&path("neighbors"), head, &neighbors, Neighbor::line)
            }
            SkyFormat::Parquet => {
                write_rows(&path("photoobjall"), &photo_rows(&objects)?)?;
                write_rows(&path("neighbors"), &neighbor_rows(&neighbors)?)
            }
        };
        write().with_context(|| format!("cannot write file {file} of the sky"))?;
    }
    Ok(size)
}

impl Object {
    fn line(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { objid, mode, kind, ra, dec, bands: [u, g, r, i, z] } = self;
        writeln!(out, "{objid},{mode},{kind},{ra:.7},{dec:.7},{u},{g},{r},{i},{z}")
    }
}

impl Neighbor {
    fn line(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { objid, neighborobjid, distance, modes: (mode, neighbormode) } = self;
        writeln!(out, "{objid},{neighborobjid},{distance:.7},{mode},{neighbormode}")
    }
}

/// Groups of objects, numbered in order, until there are enough.
fn region(file: u16, n_objects: u64, misses_magnitudes: bool) -> (Vec<Object>, Vec<Neighbor>) {
    let mut random = Random::new(u64::from(file) + 1);
    let (mut objects, mut neighbors): (Vec<Object>, Vec<Neighbor>) = (vec![], vec![]);
    let mut objid = FIRST_OBJID + i64::from(file) * (1 << 32);
    while (objects.len() as u64) < n_objects {
        let n = GROUP_MIN + random.below(GROUP_MAX - GROUP_MIN + 1);
        let (ra, dec) = (random.fraction() * 360.0, random.fraction() * 180.0 - 90.0);
        let first = objects.len();
        for _ in 0..n {
            objid += 1 + random.below(6) as i64;
            let mode = if random.below(3) < 2 { 1 } else { 2 };
            let kind = if random.below(2) == 0 { 3 } else { 6 };
            let near = |random: &mut Random| random.fraction() / 240.0;
            let (ra, dec) = (ra + near(&mut random), dec + near(&mut random));
            objects.push(Object { objid, mode, kind, ra, dec, bands: magnitudes(&mut random) });
        }
        let last = objects.len();
        if random.below(LENS_RARITY / (n * (n - 1) / 2)) == 0 {
            objects[last - 1].bands = objects[first].bands.map(|magnitude| magnitude + 0.01 * random.fraction() as f32);
        }
        if misses_magnitudes && random.below(500) == 0 {
            objects[first].bands[random.below(5) as usize] = MISSING;
        }
        for (own, other) in (first..last).flat_map(|own| (first..last).map(move |other| (own, other))) {
            if own != other {
                let (own, other) = (&objects[own], &objects[other]);
                let distance = ((own.ra - other.ra).powi(2) + (own.dec - other.dec).powi(2)).sqrt() * 60.0;
                neighbors.push(Neighbor {
                    objid: own.objid,
                    neighborobjid: other.objid,
                    distance,
                    modes: (own.mode, other.mode),
                });
            }
        }
    }
    (objects, neighbors)
}

/// Five bands: a brightness and four colours, each about half a magnitude wide.
fn magnitudes(random: &mut Random) -> [f32; 5] {
    let mut magnitude = 20.0 + random.bell();
    let mut bands = [0.0; 5];
    for (band, typical) in bands.iter_mut().zip([0.0, 1.4, 0.6, 0.3, 0.2]) {
        magnitude -= typical + 0.5 * random.bell();
        *band = magnitude as f32;
    }
    bands
}

fn photo_rows(objects: &[Object]) -> Result<RecordBatch> {
    let band = |band: usize| -> ArrayRef {
        Arc::new(Float32Array::from_iter_values(objects.iter().map(|object| object.bands[band])))
    };
    let columns: [(&str, ArrayRef); 10] = [
        ("objid", Arc::new(Int64Array::from_iter_values(objects.iter().map(|object| object.objid)))),
        ("mode", Arc::new(Int16Array::from_iter_values(objects.iter().map(|object| object.mode)))),
        ("type", Arc::new(Int16Array::from_iter_values(objects.iter().map(|object| object.kind)))),
        ("ra", Arc::new(Float64Array::from_iter_values(objects.iter().map(|object| object.ra)))),
        ("dec", Arc::new(Float64Array::from_iter_values(objects.iter().map(|object| object.dec)))),
        ("u", band(0)),
        ("g", band(1)),
        ("r", band(2)),
        ("i", band(3)),
        ("z", band(4)),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn neighbor_rows(neighbors: &[Neighbor]) -> Result<RecordBatch> {
    let columns: [(&str, ArrayRef); 5] = [
        ("objid", Arc::new(Int64Array::from_iter_values(neighbors.iter().map(|pair| pair.objid)))),
        ("neighborobjid", Arc::new(Int64Array::from_iter_values(neighbors.iter().map(|pair| pair.neighborobjid)))),
        ("distance", Arc::new(Float64Array::from_iter_values(neighbors.iter().map(|pair| pair.distance)))),
        ("mode", Arc::new(Int16Array::from_iter_values(neighbors.iter().map(|pair| pair.modes.0)))),
        ("neighbormode", Arc::new(Int16Array::from_iter_values(neighbors.iter().map(|pair| pair.modes.1)))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn write_lines<T>(
    path: &Path,
    head: &str,
    rows: &[T],
    line: impl Fn(&T, &mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "{head}")?;
    rows.iter().try_for_each(|row| line(row, &mut out))?;
    out.flush()?;
    Ok(())
}

fn write_rows(path: &Path, rows: &RecordBatch) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, rows.schema(), Some(properties))?;
    writer.write(rows)?;
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportions_are_those_of_the_survey() {
        let (objects, neighbors) = region(0, 20_000, true);
        let neighbors_each = neighbors.len() as f64 / objects.len() as f64;
        assert!((7.0..9.0).contains(&neighbors_each), "{neighbors_each}");
        assert!(objects.windows(2).all(|pair| pair[0].objid < pair[1].objid));
        assert!(objects.iter().any(|object| object.bands.contains(&MISSING)));
        assert!(!region(0, 20_000, false).0.iter().any(|object| object.bands.contains(&MISSING)));
    }
}
