//! Settings of teaching by people in other media than descriptions, and of people who are simulated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the people who teach (`people`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleConfig {
    /// How executions are rated in a run that learns from ratings: `binary` or `stars`.
    pub rating: RatingScale,
    /// How simulated people go wrong, and how long they take, where a study is rehearsed with them.
    pub simulated: PeopleModel,
}

/// A model of people: how often they slip, and how long they take. The numbers are guesses of the right size, and none of them is
/// measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleModel {
    /// Probability that a word of more than three letters is misspelt.
    #[schemars(extend("unit" = "probability"))]
    pub typo: f64,
    /// Probability that a small word is left out.
    #[schemars(extend("unit" = "probability"))]
    pub omission: f64,
    /// Probability that a description has one attribute wrong: left for right, first for last.
    #[schemars(extend("unit" = "probability"))]
    pub wrong_attribute: f64,
    /// Probability of another wording than the first that comes to mind, and of an opening, a capital or a full stop.
    #[schemars(extend("unit" = "probability"))]
    pub phrasing: f64,
    /// Probability that a demonstration is a wrong one: an edit that is near the right one, a wrong turn.
    #[schemars(extend("unit" = "probability"))]
    pub mistake: f64,
    /// Probability that yes is said for no, or no for yes.
    #[schemars(extend("unit" = "probability"))]
    pub flip: f64,
    /// Standard deviation of a rating, in stars.
    #[schemars(extend("unit" = "stars"))]
    pub drift: f64,
    /// Standard deviation between people of how many stars they give too many.
    #[schemars(extend("unit" = "stars"))]
    pub bias: f64,
    /// Probability that a person gives no answer.
    #[schemars(extend("unit" = "probability"))]
    pub cannot: f64,
    /// Median seconds of a description.
    #[schemars(extend("unit" = "seconds"))]
    pub describe_seconds: f64,
    /// Median seconds of a demonstration.
    #[schemars(extend("unit" = "seconds"))]
    pub demonstrate_seconds: f64,
    /// Median seconds of a rating.
    #[schemars(extend("unit" = "seconds"))]
    pub rate_seconds: f64,
    /// Standard deviation of the logarithm of a person's seconds.
    pub seconds_spread: f64,
    /// The seconds between two people.
    pub people_spread: f64,
}

impl Default for PeopleModel {
    fn default() -> Self {
        Self {
            typo: 0.03,
            omission: 0.05,
            wrong_attribute: 0.04,
            phrasing: 0.5,
            mistake: 0.08,
            flip: 0.08,
            drift: 0.6,
            bias: 0.5,
            cannot: 0.03,
            describe_seconds: 18.0,
            demonstrate_seconds: 20.0,
            rate_seconds: 6.0,
            seconds_spread: 0.5,
            people_spread: 0.3,
        }
    }
}

impl PeopleModel {
    /// People who never slip and always answer.
    pub fn careful() -> Self {
        Self {
            typo: 0.0,
            omission: 0.0,
            wrong_attribute: 0.0,
            phrasing: 0.0,
            mistake: 0.0,
            flip: 0.0,
            drift: 0.0,
            bias: 0.0,
            cannot: 0.0,
            ..Self::default()
        }
    }

    /// Refuses numbers that make no sense.
    ///
    /// # Errors
    /// The sentence that says which.
    pub(super) fn check(&self) -> Result<(), String> {
        let shares =
            [self.typo, self.omission, self.wrong_attribute, self.phrasing, self.mistake, self.flip, self.cannot];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Err(
                "typo, omission, wrong_attribute, phrasing, mistake, flip and cannot under people.simulated lie \
                        between 0 and 1"
                    .into(),
            );
        }
        let spreads = [self.drift, self.bias, self.seconds_spread, self.people_spread];
        if !spreads.iter().all(|spread| (0.0..=10.0).contains(spread)) {
            return Err(
                "drift, bias, seconds_spread and people_spread under people.simulated lie between 0 and 10".into()
            );
        }
        let medians = [self.describe_seconds, self.demonstrate_seconds, self.rate_seconds];
        if !medians.iter().all(|seconds| (0.0..=3600.0).contains(seconds)) {
            return Err("the seconds under people.simulated lie between 0 and 3600".into());
        }
        Ok(())
    }
}

/// The scale on which a person rates an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RatingScale {
    /// Whether it did what was asked: no is 0, yes is 1.
    #[default]
    Binary,
    /// One to five stars, which are 0, ¼, ½, ¾ and 1.
    Stars,
}

impl RatingScale {
    /// The ratings that one can give, worst first.
    pub fn steps(self) -> &'static [f64] {
        match self {
            Self::Binary => &[0.0, 1.0],
            Self::Stars => &[0.0, 0.25, 0.5, 0.75, 1.0],
        }
    }

    /// Whether a number is a rating on this scale.
    pub fn has(self, rating: f64) -> bool {
        self.steps().contains(&rating)
    }

    /// A rating in words.
    pub fn words(self, rating: f64) -> String {
        match self {
            Self::Binary if rating >= 0.5 => "yes".to_owned(),
            Self::Binary => "no".to_owned(),
            Self::Stars => {
                let stars = (rating.clamp(0.0, 1.0) * 4.0).round() as u64 + 1;
                format!("{stars} of 5 stars")
            }
        }
    }

    /// The step of the scale that is nearest to a number.
    pub fn nearest(self, rating: f64) -> f64 {
        let most = (self.steps().len() - 1) as f64;
        (rating.clamp(0.0, 1.0) * most).round() / most
    }
}

#[cfg(test)]
mod tests {
    use super::RatingScale::{Binary, Stars};

    #[test]
    fn ratings_lie_on_their_scale() {
        assert!(Binary.has(1.0) && !Binary.has(0.5) && Stars.has(0.25) && !Stars.has(0.3) && !Stars.has(f64::NAN));
        assert_eq!((Binary.words(0.0), Stars.words(0.75)), ("no".to_owned(), "4 of 5 stars".to_owned()));
        assert_eq!((Binary.nearest(0.7), Stars.nearest(0.7), Stars.nearest(-3.0)), (1.0, 0.75, 0.0));
    }
}
