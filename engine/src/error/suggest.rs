//! [`nearest`]: the name that a misspelt one was meant to be.

/// The candidate that differs least from `name`, if it differs little: by case, or by one letter in three. Any name of one letter is like
/// any other, so these differ by case only.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes time in the product of both lengths.
    const BYTES_MAX: usize = 1000;
    if name.len() > BYTES_MAX {
        return None;
    }
    let wanted = name.to_lowercase();
    let letters = wanted.chars().count();
    let allowed = if letters > 1 { (letters / 3).max(1) } else { 0 };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .filter(|candidate| candidate.chars().count().abs_diff(letters) <= allowed)
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        // A tie is broken by the alphabet, so that the same mistake gets the same advice.
        .min()
        .map(|(_, candidate)| candidate)
}

/// Advice to use `meant`. Names that DataFusion would fold to lower case need quotes.
pub(super) fn did_you_mean(name: &str, meant: &str) -> String {
    let last = meant.rsplit('.').next().unwrap_or(meant);
    if last.chars().any(char::is_uppercase) && last.eq_ignore_ascii_case(name.rsplit('.').next().unwrap_or(name)) {
        format!("did you mean \"{last}\"? names with capital letters need double quotes")
    } else {
        format!("did you mean \"{meant}\"?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_only() {
        let names = ["orders", "order_items", "customer", "Region"];
        for (name, expected) in [
            ("order", Some("orders")),
            ("custmoer", Some("customer")),
            ("region", Some("Region")),
            ("lineitem", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
        for (name, expected) in [("t", None), ("e", Some("E")), ("E", None), ("i", None), ("is", Some("id"))] {
            assert_eq!(nearest(name, ["E", "id", "value"]), expected, "{name}");
        }
        assert_eq!(
            did_you_mean("region", "Region"),
            "did you mean \"Region\"? names with capital letters need double quotes"
        );
    }
}
