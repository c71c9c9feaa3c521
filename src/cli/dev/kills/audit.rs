//! The audit of what kills have left: every acknowledged answer is stored once, and was learnt from once.

use std::collections::BTreeMap;

/// The answers of a run as the teachers, the store and the trainer know them after the last process has ended. Every text was typed once.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Texts of answers that the server acknowledged, with the key that it gave them.
    pub(super) acknowledged: BTreeMap<String, i64>,
    /// Texts that were sent, acknowledged or not.
    pub(super) sent: Vec<String>,
    /// Key and text of every stored answer, and the update that used it.
    pub(super) stored: Vec<(i64, String, Option<u64>)>,
    /// Texts in the log of what the agent learnt from.
    pub(super) learnt: Vec<String>,
    /// Descriptions by people that the last checkpoint has learnt from.
    pub(super) counted: u64,
}

impl Books {
    /// The faults, a sentence each.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut stored: BTreeMap<&str, Vec<(i64, Option<u64>)>> = BTreeMap::new();
        for (key, text, used) in &self.stored {
            stored.entry(text).or_default().push((*key, *used));
        }
        let mut learnt: BTreeMap<&str, usize> = BTreeMap::new();
        for text in &self.learnt {
            *learnt.entry(text).or_default() += 1;
        }
        for (text, key) in &self.acknowledged {
            match stored.get(text.as_str()).map(Vec::as_slice) {
                None => faults.push(format!("answer {key} was acknowledged and is lost: {text}")),
                Some([(found, _)]) if found == key => {}
                Some(found) => faults.push(format!("answer {key} was acknowledged, and {found:?} are stored: {text}")),
            }
        }
        for (text, rows) in &stored {
            if rows.len() > 1 && !self.acknowledged.contains_key(*text) {
                faults.push(format!("an answer is stored {} times: {text}", rows.len()));
            }
            if !self.sent.iter().any(|sent| sent == text) {
                faults.push(format!("an answer is stored that nobody sent: {text}"));
            }
            let used = rows.iter().filter(|(_, used)| used.is_some()).count();
            let times = learnt.get(text).copied().unwrap_or(0);
            if used != times {
                faults.push(format!("an answer that {used} updates used was learnt from {times} times: {text}"));
            }
        }
        for text in learnt.keys().filter(|text| !stored.contains_key(*text)) {
            faults.push(format!("the agent learnt from an answer that is not stored: {text}"));
        }
        if self.counted != self.learnt.len() as u64 {
            faults.push(format!(
                "the checkpoint counts {} descriptions of people and its log has {}",
                self.counted,
                self.learnt.len()
            ));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> Books {
        Books {
            acknowledged: [("a".to_owned(), 1), ("b".to_owned(), 2)].into(),
            sent: ["a", "b", "c", "d"].map(str::to_owned).into(),
            stored: vec![(1, "a".into(), Some(1)), (2, "b".into(), Some(2)), (3, "c".into(), None)],
            learnt: vec!["a".into(), "b".into()],
            counted: 2,
        }
    }

    #[test]
    fn an_answer_without_a_reply_may_be_there_or_not() {
        assert_eq!(books().faults(), [""; 0], "c was stored before its reply was lost, and d never came");
    }

    #[test]
    fn whatever_is_lost_doubled_or_made_up_is_told() {
        type Spoil = fn(&mut Books);
        let cases: [(&str, Spoil); 7] = [
            ("is lost", |books| books.stored.retain(|(key, ..)| *key != 2)),
            ("are stored", |books| books.stored.push((4, "a".into(), None))),
            ("are stored", |books| books.stored[0].0 = 9),
            ("stored 2 times", |books| books.stored.push((5, "c".into(), None))),
            ("nobody sent", |books| books.stored.push((6, "e".into(), None))),
            ("learnt from 2 times", |books| books.learnt.push("a".into())),
            ("counts 3", |books| books.counted = 3),
        ];
        for (words, spoil) in cases {
            let mut spoilt = books();
            spoil(&mut spoilt);
            let faults = spoilt.faults();
            assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: {faults:?}");
        }
    }
}
