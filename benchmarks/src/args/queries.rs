//! [`QuerySet`]: which of the 22 queries.

use std::str::FromStr;

use crate::tpch::N_QUERIES;

/// Some of the 22 queries, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuerySet(Vec<usize>);

impl QuerySet {
    pub(super) fn all() -> Self {
        Self((1..=N_QUERIES).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }
}

impl FromStr for QuerySet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse() {
            Ok(number) if (1..=N_QUERIES).contains(&number) => Ok(number),
            _ => Err(format!("\"{text}\" is not a query: they are 1 to {N_QUERIES}")),
        };
        let mut queries = vec![];
        for part in text.split(',') {
            match part.split_once("..") {
                None => queries.push(number(part)?),
                Some((first, "")) => queries.extend(number(first)?..=N_QUERIES),
                Some((first, last)) => queries.extend(number(first)?..=number(last)?),
            }
        }
        queries.sort_unstable();
        queries.dedup();
        Ok(Self(queries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_queries() {
        let set = |text: &str| text.parse::<QuerySet>().map(|set| set.0);
        assert_eq!(set("3,1,3"), Ok(vec![1, 3]));
        assert_eq!(set("5..7,20.."), Ok(vec![5, 6, 7, 20, 21, 22]));
        assert!(set("0").is_err() && set("23").is_err() && set("").is_err() && set("1..x").is_err());
    }
}
