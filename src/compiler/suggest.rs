//! "Did you mean": the nearest of the names that exist.

/// The candidate nearest to `name`, when one is near enough to have been meant.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Distances cost the product of the lengths, so names nobody would type are not compared.
    const LONGEST: usize = 100;
    // And among thousands of names of the right length, the first will do.
    const MOST_COMPARED: usize = 500;
    if name.len() > LONGEST {
        return None;
    }
    let letters = name.chars().count();
    let most = (letters / 3).max(1);
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        // Each letter too many or too few is one step; this spares most of the candidates the full comparison.
        .filter(|candidate| candidate.len() <= LONGEST && candidate.chars().count().abs_diff(letters) <= most)
        .take(MOST_COMPARED)
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "user"?` when something is near, else `; INTRO a, b, c` with what there is.
pub fn or_list(nearest: Option<&str>, intro: &str, all: &[&str]) -> String {
    const MOST: usize = 8;
    match (nearest, all) {
        (Some(name), _) => format!("; did you mean \"{name}\"?"),
        (None, []) => String::new(),
        (None, all) if all.len() <= MOST => format!("; {intro} {}", all.join(", ")),
        (None, all) => format!("; {intro} {} and {} more", all.get(..MOST).unwrap_or(all).join(", "), all.len() - MOST),
    }
}
