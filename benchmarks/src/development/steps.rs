//! SkyServer's query 18 as it comes about: four steps, each on top of the one before, each right only after some tries.
//!
//! The query looks for gravitational lenses: objects with a neighbour of the same colours. Its text is in section 2.1 of the
//! Dryad paper (Isard et al., EuroSys 2007); what Nectar saved while it was developed is table 6 of the Nectar paper.

/// One step of a developer.
pub(crate) struct Step {
    /// What the query does now that it did not do before.
    pub(crate) adds: &'static str,
    /// What Nectar saved, in percent.
    pub(crate) paper_percent: f64,
    /// The least that is to be saved, in percent.
    pub(crate) saved_percent_min: Option<f64>,
    /// What is typed, in order. The last one is right.
    pub(crate) tries: Vec<Try>,
}

/// One statement.
pub(crate) struct Try {
    pub(crate) sql: String,
    /// Why it fails; `None` if it is right.
    pub(crate) flaw: Option<&'static str>,
}

const PAIRS: &str = "SELECT p.objid, n.neighborobjid, p.u, p.g, p.r, p.i, p.z
  FROM photoobjall p
  JOIN neighbors n ON p.objid = n.objid AND n.objid < n.neighborobjid
  WHERE p.mode = 1";

const COLOURS: &str = "SELECT objid, neighborobjid, u - g AS ug, g - r AS gr, r - i AS ri, i - z AS iz FROM pairs";

const ALIKE: &str = "SELECT c.objid, c.neighborobjid, abs(c.ug - (l.u - l.g)) AS differs
  FROM colours c
  JOIN photoobjall l ON l.objid = c.neighborobjid AND l.mode = 1
   AND abs(c.ug - (l.u - l.g)) < 0.05
   AND abs(c.gr - (l.g - l.r)) < 0.05
   AND abs(c.ri - (l.r - l.i)) < 0.05
   AND abs(c.iz - (l.i - l.z)) < 0.05";

const LENSES: &str = "SELECT DISTINCT objid FROM alike";

/// All four.
pub(crate) fn steps() -> Vec<Step> {
    let with_pairs = |rest: &str| format!("WITH pairs AS (\n  {PAIRS}\n)\n{rest}");
    let with_colours = |rest: &str| format!("{},\ncolours AS (\n  {COLOURS}\n)\n{rest}", with_pairs("").trim_end());
    let with_alike = |rest: &str| format!("{},\nalike AS (\n  {ALIKE}\n)\n{rest}", with_colours("").trim_end());
    vec![
        Step {
            adds: "primary objects and their neighbours (join X)",
            paper_percent: 0.0,
            saved_percent_min: None,
            tries: vec![
                fails("no such column", &PAIRS.replace("n.neighborobjid,", "n.neighbor_objid,")),
                fails("objid does not fit into INT", &PAIRS.replace("p.objid,", "CAST(p.objid AS INT),")),
                works(PAIRS),
            ],
        },
        Step {
            adds: "colours",
            paper_percent: 58.0,
            saved_percent_min: Some(60.0),
            tries: vec![
                fails("syntax", &with_pairs(&COLOURS.replace("FROM", "FORM"))),
                fails(
                    "a missing magnitude does not fit into SMALLINT",
                    &with_pairs(&COLOURS.replace("u - g", "CAST(1000 * (u - g) AS SMALLINT)")),
                ),
                works(&with_pairs(COLOURS)),
            ],
        },
        Step {
            adds: "neighbours of the same colours (join Y)",
            paper_percent: 71.0,
            saved_percent_min: Some(75.0),
            tries: vec![
                fails("ambiguous column", &with_colours(&ALIKE.replace("c.objid,", "objid,"))),
                fails(
                    "division by zero",
                    &with_colours(&ALIKE.replace(
                        "abs(c.ug - (l.u - l.g)) AS differs",
                        "100 / CAST(1000 * abs(c.ug - (l.u - l.g)) AS INT) AS likeness",
                    )),
                ),
                works(&with_colours(ALIKE)),
            ],
        },
        Step {
            adds: "each object once",
            paper_percent: 88.0,
            saved_percent_min: Some(90.0),
            tries: vec![
                fails("no such column", &with_alike(&LENSES.replace("objid", "obj"))),
                fails("objid does not fit into INT", &with_alike(&LENSES.replace("objid", "CAST(objid AS INT)"))),
                works(&with_alike(LENSES)),
            ],
        },
    ]
}

fn fails(flaw: &'static str, sql: &str) -> Try {
    Try { sql: sql.to_string(), flaw: Some(flaw) }
}

fn works(sql: &str) -> Try {
    Try { sql: sql.to_string(), flaw: None }
}
