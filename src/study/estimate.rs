//! The estimate of a study's time and money, from its settings and from what its teachers have needed so far.

use super::StudySettings;

/// Seconds that a description takes when nobody has given one yet: about what people needed in sittings.
pub const SECONDS_PER_ANSWER: f64 = 25.0;

/// Minutes and cost of a study. Money is in the settings' currency.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub struct Estimate {
    /// Minutes of one teacher, guidelines and qualification included.
    pub minutes_each: f64,
    /// Teachers; `None` where their number has no limit.
    pub teachers: Option<u32>,
    /// Answers of all teachers; `None` where there is no limit.
    pub answers: Option<u64>,
    /// Reward of one teacher.
    pub reward_each: f64,
    /// Rewards of all, without the platform's fee.
    pub rewards: Option<f64>,
}

impl Estimate {
    /// The estimate for settings. `seconds`: mean active seconds of an answer so far, where there are some.
    pub fn of(settings: &StudySettings, seconds: Option<f64>) -> Estimate {
        let seconds = seconds.filter(|s| s.is_finite() && *s > 0.0).unwrap_or(SECONDS_PER_ANSWER);
        let answers = f64::from(settings.goal) + f64::from(settings.qualification.executions);
        let reading = words(&settings.consent) + words(&settings.guidelines) + words(&settings.summary);
        // People read some 200 words a minute.
        let worked_out = answers * seconds / 60.0 + reading as f64 / 200.0;
        let minutes_each = if settings.minutes > 0 { f64::from(settings.minutes) } else { worked_out };
        let teachers = (settings.places > 0).then_some(settings.places);
        let reward_each = minutes_each / 60.0 * settings.pay_per_hour;
        Estimate {
            minutes_each,
            teachers,
            answers: teachers.filter(|_| settings.goal > 0).map(|n| u64::from(n) * u64::from(settings.goal)),
            reward_each,
            rewards: teachers.map(|n| f64::from(n) * reward_each),
        }
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_cost_follow_from_goal_places_and_pay() {
        let mut settings =
            StudySettings { goal: 48, places: 10, pay_per_hour: 12.0, minutes: 0, ..StudySettings::default() };
        settings.consent = "word ".repeat(200);
        (settings.summary, settings.guidelines) = (String::new(), String::new());
        settings.qualification.executions = 0;
        let estimate = Estimate::of(&settings, None);
        assert_eq!((estimate.minutes_each, estimate.answers), (21.0, Some(480)));
        assert!((estimate.rewards.unwrap() - 42.0).abs() < 1e-9);
        // The time that people needed counts more than the first guess, and a fixed time more than both.
        assert_eq!(Estimate::of(&settings, Some(50.0)).minutes_each, 41.0);
        assert_eq!(Estimate::of(&StudySettings { minutes: 15, ..settings.clone() }, Some(50.0)).minutes_each, 15.0);
        assert_eq!(Estimate::of(&StudySettings { places: 0, ..settings }, None).rewards, None);
    }
}
