//! Keys of runs, executions, answers and teachers.

/// Key of a run.
pub type RunId = String;
/// Key of an execution.
pub type ExecutionId = i64;
/// Key of an answer.
pub type AnswerId = i64;
/// Key of a teacher.
pub type TeacherId = i64;
