//! Names in another case: `rename_all`.

/// The existing cases, each named by an example of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// Returns the case of this name, or an error message.
    pub fn from_name(name: &str) -> Result<Case, String> {
        CASES.iter().find(|(known, _)| *known == name).map(|(_, case)| *case).ok_or_else(|| {
            let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
            format!("unknown case {name:?}: expected one of {}", names.join(", "))
        })
    }

    /// Converts a field's name, which is in snake case, to this case.
    pub fn of_field(self, name: &str) -> String {
        match self {
            Case::Lower | Case::Snake => name.to_string(),
            Case::Upper | Case::ScreamingSnake => name.to_uppercase(),
            Case::Pascal => name.split('_').map(capitalized).collect(),
            Case::Camel => uncapitalized(&Case::Pascal.of_field(name)),
            Case::Kebab => name.replace('_', "-"),
            Case::ScreamingKebab => name.to_uppercase().replace('_', "-"),
        }
    }

    /// Converts a variant's name, which is in Pascal case, to this case.
    pub fn of_variant(self, name: &str) -> String {
        match self {
            Case::Pascal => name.to_string(),
            Case::Lower => name.to_lowercase(),
            Case::Upper => name.to_uppercase(),
            Case::Camel => uncapitalized(name),
            Case::Snake => {
                let mut snake = String::new();
                for letter in name.chars() {
                    if letter.is_uppercase() && !snake.is_empty() {
                        snake.push('_');
                    }
                    snake.extend(letter.to_lowercase());
                }
                snake
            }
            other => other.of_field(&Case::Snake.of_variant(name)),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn uncapitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_named_by_an_example() {
        for (case, field, variant) in [
            ("lowercase", "one_two", "onetwo"),
            ("UPPERCASE", "ONE_TWO", "ONETWO"),
            ("PascalCase", "OneTwo", "OneTwo"),
            ("camelCase", "oneTwo", "oneTwo"),
            ("snake_case", "one_two", "one_two"),
            ("SCREAMING_SNAKE_CASE", "ONE_TWO", "ONE_TWO"),
            ("kebab-case", "one-two", "one-two"),
            ("SCREAMING-KEBAB-CASE", "ONE-TWO", "ONE-TWO"),
        ] {
            let case = Case::from_name(case).unwrap();
            assert_eq!((&*case.of_field("one_two"), &*case.of_variant("OneTwo")), (field, variant), "{case:?}");
        }
        assert!(Case::from_name("lower").unwrap_err().contains("kebab-case"));
    }
}
