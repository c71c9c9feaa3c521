//! NAV as people meet it (in words).

use crate::task::{Audience, Family, Guide, RenderError};
use serde_json::Value;

/// NAV's entry in the registry of task families.
#[derive(Clone, Copy, Debug, Default)]
pub struct NavFamily;

impl Family for NavFamily {
    fn name(&self) -> &'static str {
        "nav"
    }
    fn title(&self) -> &'static str {
        "Walking through houses"
    }
    fn teacher_prompt(&self) -> &'static str {
        "Which way did the agent go?"
    }
    fn placeholder(&self) -> &'static str {
        "leave the kitchen, go up the stairs and stop at the first door"
    }
    fn guide(&self) -> Guide {
        Guide { view: Value::Null, good: Vec::new(), poor: Vec::new() }
    }
    fn render(&self, view: &Value, _: Audience) -> Result<String, RenderError> {
        self.render_text(view)
    }
    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        Ok(view["words"]
            .as_array()
            .map_or(String::new(), |w| w.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")))
    }
    fn render_try_fields(&self) -> Result<String, RenderError> {
        Ok(String::new())
    }
}
