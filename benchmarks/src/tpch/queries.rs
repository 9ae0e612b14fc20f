//! The text of the 22 queries, with the default parameters of the specification.

/// There are 22.
pub(crate) const N_QUERIES: usize = TEXTS.len();

const TEXTS: [&str; 22] = [
    include_str!("../../queries/q01.sql"),
    include_str!("../../queries/q02.sql"),
    include_str!("../../queries/q03.sql"),
    include_str!("../../queries/q04.sql"),
    include_str!("../../queries/q05.sql"),
    include_str!("../../queries/q06.sql"),
    include_str!("../../queries/q07.sql"),
    include_str!("../../queries/q08.sql"),
    include_str!("../../queries/q09.sql"),
    include_str!("../../queries/q10.sql"),
    include_str!("../../queries/q11.sql"),
    include_str!("../../queries/q12.sql"),
    include_str!("../../queries/q13.sql"),
    include_str!("../../queries/q14.sql"),
    include_str!("../../queries/q15.sql"),
    include_str!("../../queries/q16.sql"),
    include_str!("../../queries/q17.sql"),
    include_str!("../../queries/q18.sql"),
    include_str!("../../queries/q19.sql"),
    include_str!("../../queries/q20.sql"),
    include_str!("../../queries/q21.sql"),
    include_str!("../../queries/q22.sql"),
];

/// Query `number`, counted from 1, for data of that scale.
pub(crate) fn sql(number: usize, scale: f64) -> String {
    // Only query 11 has a parameter that depends on the scale.
    TEXTS[number - 1].replace(":fraction", &format!("{:.10}", 0.0001 / scale))
}
