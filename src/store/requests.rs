//! The requests of executions: hidden from teachers unless the run shows them, or a teacher asks to see one.

use super::Store;
use super::connection::Durability;
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use crate::ids::{ExecutionId, TeacherId};

row! {
    /// The request of an execution, and whether a teacher knows it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Asked {
        /// The request d*.
        pub request: String,
        /// Whether the teacher can see it: the run shows requests, or they asked to see this one.
        pub visible: bool,
        /// Whether the execution does what was asked.
        pub success: bool,
    }
}

impl Store {
    /// The request of an execution, and whether the teacher can see it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such execution.
    pub async fn asked(&self, execution: ExecutionId, teacher: TeacherId) -> Result<Asked> {
        query_as!(
            Asked,
            r#"SELECT executions.request AS "request!",
                   (runs.request_shown = 1 OR EXISTS (SELECT 1 FROM leases
                       WHERE leases.execution = executions.id AND leases.teacher = ?2 AND leases.revealed = 1))
                       AS "visible!: bool",
                   executions.success AS "success!: bool"
               FROM executions CROSS JOIN runs ON runs.id = executions.run WHERE executions.id = ?1"#,
            execution,
            teacher,
        )
        .fetch_optional(self.readers())
        .await?
        .ok_or(StoreError::NotFound("the execution"))
    }

    /// Shows the request of an execution to a teacher who has it or has had it. From then on it stands beside that execution,
    /// and their answers about it say that they could see it.
    ///
    /// # Errors
    /// [`StoreError::NeverYours`] when the teacher never had the execution.
    pub async fn reveal(&self, execution: ExecutionId, teacher: TeacherId) -> Result<String> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let revealed = query!("UPDATE leases SET revealed = 1 WHERE execution = ? AND teacher = ?", execution, teacher)
            .execute(&mut tx)
            .await?;
        if revealed.rows_affected() == 0 {
            return Err(StoreError::NeverYours);
        }
        let request =
            query_scalar!("SELECT request FROM executions WHERE id = ?", execution).fetch_one(&mut tx).await?;
        tx.commit().await?;
        Ok(request)
    }
}
