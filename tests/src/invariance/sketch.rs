//! [`Sketch`]: a statement with marked literals, aliases and conjuncts, so that near-copies of it can be made.
//!
//! ```text
//!   SELECT a.k AS §c1§ FROM m a WHERE ⟦a.k > ‹3›⟧ AND ⟦a.b⟧
//!       another literal      a.k > 4
//!       another word         a.k >= 3, FROM n a, RIGHT JOIN instead of LEFT JOIN, max() instead of min()
//!       conjuncts swapped    a.b AND a.k > 3
//!       aliases renamed      AS c1_7
//!       an outer layer       SELECT count(*) FROM (..)
//! ```

use super::Random;

/// Marks of literals, aliases and conjuncts.
pub(super) const LITERAL: [char; 2] = ['‹', '›'];
pub(super) const ALIAS: char = '§';
pub(super) const CONJUNCT: [char; 2] = ['⟦', '⟧'];

/// What stands between two conjuncts that can be swapped.
const AND: &str = "⟧ AND ⟦";

/// Words that can take the place of others: the statement still fits its types and means something else.
const WORDS: [(&str, &str); 50] = [
    ("INNER JOIN", "LEFT JOIN"),
    ("LEFT JOIN", "RIGHT JOIN"),
    ("RIGHT JOIN", "FULL JOIN"),
    ("FULL JOIN", "INNER JOIN"),
    ("SEMI JOIN", "ANTI JOIN"),
    ("ANTI JOIN", "SEMI JOIN"),
    ("min(", "max("),
    ("max(", "min("),
    ("count(DISTINCT ", "count("),
    ("sum(DISTINCT ", "sum("),
    ("SELECT DISTINCT", "SELECT"),
    ("UNION ALL", "UNION"),
    ("UNION SELECT", "UNION ALL SELECT"),
    ("INTERSECT", "EXCEPT"),
    ("EXCEPT", "INTERSECT"),
    (" NOT IN (", " IN ("),
    (" IN (", " NOT IN ("),
    ("NOT EXISTS", "EXISTS"),
    ("EXISTS", "NOT EXISTS"),
    (" LIKE '", " ILIKE '"),
    (" LIKE '", " NOT LIKE '"),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" < ", " > "),
    (" = ", " <= "),
    (" <> ", " = "),
    ("IS NULL", "IS NOT NULL"),
    ("IS NOT NULL", "IS NULL"),
    ("IS DISTINCT", "IS NOT DISTINCT"),
    ("IS NOT DISTINCT", "IS DISTINCT"),
    (" OR ", " AND "),
    ("2 PRECEDING", "3 PRECEDING"),
    ("CURRENT ROW", "1 FOLLOWING"),
    ("NULLS FIRST", "NULLS LAST"),
    ("NULLS LAST", "NULLS FIRST"),
    (" DESC", ""),
    ("ROLLUP", "CUBE"),
    ("upper(", "lower("),
    ("'day'", "'hour'"),
    ("lag(", "lead("),
    ("rank()", "row_number()"),
    ("abs(", "-("),
    (".id", ".k"),
    (".k", ".id"),
    (" + ", " - "),
    (" FROM m ", " FROM n "),
    (" FROM e ", " FROM c "),
    ("'a", "'b"),
];

/// A statement that can be changed a little.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) text: String,
    /// Put behind every alias.
    pub(super) suffix: String,
}

impl Sketch {
    pub(super) fn new(text: String) -> Self {
        Self { text, suffix: String::new() }
    }

    /// The statement.
    pub(super) fn sql(&self) -> String {
        let mut sql = String::new();
        let mut in_alias = false;
        for c in self.text.chars() {
            match c {
                ALIAS => {
                    if in_alias {
                        sql.push_str(&self.suffix);
                    }
                    in_alias = !in_alias;
                }
                c if LITERAL.contains(&c) || CONJUNCT.contains(&c) => {}
                c => sql.push(c),
            }
        }
        sql
    }

    /// The same with one number changed.
    pub(super) fn with_other_literal(mut self, random: &mut Random) -> Self {
        let places: Vec<usize> = self.text.match_indices(LITERAL[0]).map(|(at, _)| at).collect();
        if places.is_empty() {
            return self;
        }
        let start = random.pick(&places) + LITERAL[0].len_utf8();
        let Some(length) = self.text[start..].find(LITERAL[1]) else { return self };
        let old = &self.text[start..start + length];
        if let Ok(number) = old.parse::<i64>() {
            let new = (number + 1).to_string();
            self.text.replace_range(start..start + length, &new);
        }
        self
    }

    /// The same with one word changed.
    pub(super) fn with_other_word(mut self, random: &mut Random) -> Self {
        let mut places = vec![];
        for (old, new) in WORDS {
            places.extend(self.text.match_indices(old).map(|(at, _)| (at, old, new)));
        }
        if !places.is_empty() {
            let (at, old, new) = *random.pick(&places);
            self.text.replace_range(at..at + old.len(), new);
        }
        self
    }

    /// The same with two conjuncts swapped: it means the same.
    pub(super) fn with_swapped_conjuncts(mut self, random: &mut Random) -> Self {
        let places: Vec<usize> = self.text.match_indices(AND).map(|(at, _)| at).collect();
        if places.is_empty() {
            return self;
        }
        let end = *random.pick(&places);
        let (open, close) = (CONJUNCT[0], CONJUNCT[1]);
        let mut depth = 0;
        let left = self.text[..end].char_indices().rev().find(|(_, c)| {
            depth += i32::from(*c == close) - i32::from(*c == open);
            depth < 0
        });
        depth = 0;
        let start = end + AND.len();
        let right = self.text[start..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == open) - i32::from(*c == close);
            depth < 0
        });
        let (Some((left, _)), Some((right, _))) = (left, right) else { return self };
        let (left, right) = (left + open.len_utf8(), start + right);
        let swapped = format!("{}{AND}{}", &self.text[start..right], &self.text[left..end]);
        self.text.replace_range(left..right, &swapped);
        self
    }

    /// The same with other aliases.
    pub(super) fn renamed(mut self, random: &mut Random) -> Self {
        self.suffix = format!("_{}", random.below(100));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_copies() {
        let mut random = Random::new(1);
        let sketch = Sketch::new("SELECT k AS §c§ FROM m WHERE ⟦k > ‹3›⟧ AND ⟦b AND (⟦f⟧ AND ⟦g⟧)⟧".to_owned());
        assert_eq!(sketch.sql(), "SELECT k AS c FROM m WHERE k > 3 AND b AND (f AND g)");
        let other = sketch.clone().with_other_literal(&mut random);
        assert_eq!(other.sql(), "SELECT k AS c FROM m WHERE k > 4 AND b AND (f AND g)");
        let swapped: Vec<String> = (0..9).map(|_| sketch.clone().with_swapped_conjuncts(&mut random).sql()).collect();
        assert!(swapped.contains(&"SELECT k AS c FROM m WHERE b AND (f AND g) AND k > 3".to_owned()), "{swapped:?}");
        assert!(swapped.contains(&"SELECT k AS c FROM m WHERE k > 3 AND b AND (g AND f)".to_owned()), "{swapped:?}");
        assert!(sketch.renamed(&mut random).sql().starts_with("SELECT k AS c_"));
    }
}
