//! The same delta on bases of other sizes: what an append costs must not depend on what was there before.

use std::path::Path;

use anyhow::Result;

use super::growing::Growing;
use super::sizes::learn;
use super::{LINEAR, PAUSE, nectarine};
use crate::REST;
use crate::args::AppendArgs;
use crate::timing::{Samples, geometric_mean};
use crate::tpch::contender::Keeping;
use crate::tpch::data::{self, Table};
use crate::tpch::queries;

/// Files of each large table, before the delta.
const N_FILES: u16 = 10;

/// Bases, and one part in how many of each the delta is: always the same number of lines.
const BASES: [(f64, u16); 3] = [(0.2, 20), (1.0, 100), (5.0, 500)];

/// Queries that read nothing but lineitem.
const OF_LINEITEM_ALONE: [usize; 2] = [1, 6];

/// One query over each base.
pub(crate) struct BaseFigures {
    pub(crate) number: usize,
    /// The scale, and what the query took after an append.
    pub(crate) bases: Vec<(f64, Samples)>,
}

impl BaseFigures {
    /// The largest base against the smallest.
    pub(crate) fn growth(&self) -> f64 {
        match (self.bases.first(), self.bases.last()) {
            (Some((_, small)), Some((_, large))) => large.median() / small.median(),
            _ => f64::NAN,
        }
    }

    /// Whether it reads no other table, which would be larger as well.
    pub(crate) fn is_alone(&self) -> bool {
        OF_LINEITEM_ALONE.contains(&self.number)
    }
}

/// Growth over the queries of lineitem alone, and over those that join.
pub(crate) fn growth(figures: &[BaseFigures], is_alone: bool) -> f64 {
    geometric_mean(figures.iter().filter(|query| query.is_alone() == is_alone).map(BaseFigures::growth))
}

/// The linear queries on all bases.
pub(super) async fn measure(args: &AppendArgs, folder: &Path) -> Result<Vec<BaseFigures>> {
    let wanted = args.queries.iter().filter(|number| LINEAR.contains(number));
    let mut figures: Vec<BaseFigures> = wanted.map(|number| BaseFigures { number, bases: vec![] }).collect();
    for (factor, one_in) in BASES {
        let scale = factor * args.scale;
        let data = tokio::task::block_in_place(|| data::prepare(folder, scale, N_FILES))?;
        let mut growing = Growing::new(&data)?;
        for table in Table::ALL {
            growing.add(table, if table == Table::LineItem { N_FILES - 1 } else { u16::MAX })?;
        }
        tokio::time::sleep(REST).await;
        let ours = nectarine(&growing, Keeping::On).await?;
        let mut times: Vec<Samples> = figures.iter().map(|_| Samples::default()).collect();
        for append in 0..=args.appends {
            if append > 0 {
                let first = one_in / N_FILES * (N_FILES - 1);
                growing.write(Table::LineItem, scale, first + (append - 1) % (one_in / N_FILES), one_in)?;
                tokio::time::sleep(REST).await;
                learn(&ours, &[Table::LineItem]).await?;
            }
            for (query, times) in figures.iter().zip(&mut times) {
                let run = ours.run(&queries::sql(query.number, scale)).await?;
                tokio::time::sleep(PAUSE).await;
                if append > 0 {
                    times.push(run.total);
                }
            }
        }
        ours.shutdown().await;
        figures.iter_mut().zip(times).for_each(|(query, times)| query.bases.push((scale, times)));
        eprintln!("the same delta on scale {scale} measured");
    }
    Ok(figures)
}
