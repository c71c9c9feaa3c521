//! The names of the weights of both NAV models: of their layers and blocks, and of the parts of a block. A layer called `name`
//! has the parameters `name.weight` and `name.bias`.

// The student.

/// Embeddings of the words of requests.
pub const REQUEST_EMBEDDING: &str = "request_embedding";
/// The request encoder's attention.
pub const ENCODER_ATTENTION: &str = "encoder.attention";
/// The request encoder's feed-forward block.
pub const ENCODER_FORWARD: &str = "encoder.forward";
/// The bridge from what was read to the decoder's initial state; also the describer's.
pub const BRIDGE: &str = "bridge";
/// Encodings of steps of a walk.
pub const TIME: &str = "time";
/// The attention over the views before the text decoder.
pub const CURRENT_VIEW: &str = "current_view";
/// The text decoder's input.
pub const TEXT_INPUT: &str = "text.input";
/// The text decoder's attention over its own outputs.
pub const TEXT_MEMORY: &str = "text.memory";
/// The text decoder's attention over the request.
pub const TEXT_REQUEST: &str = "text.request";
/// The text decoder's feed-forward block.
pub const TEXT_FORWARD: &str = "text.forward";
/// The attention over the views before the state decoder.
pub const NEXT_VIEW: &str = "next_view";
/// The state decoder's input.
pub const STATE_INPUT: &str = "state.input";
/// The state decoder's attention over its own outputs.
pub const STATE_MEMORY: &str = "state.memory";
/// The state decoder's feed-forward block.
pub const STATE_FORWARD: &str = "state.forward";
/// The gate of the similarity memory.
pub const STATE_GATE: &str = "state.gate";
/// The projection of states in the score of an action.
pub const PREDICTOR_STATE: &str = "predictor.state";
/// The projection of actions in the score.
pub const PREDICTOR_ACTION: &str = "predictor.action";
/// The last layer of the score.
pub const PREDICTOR_OUTPUT: &str = "predictor.output";

// The describer, which has a `BRIDGE` as well.

/// The attention over the views along a path.
pub const PATH_VIEW: &str = "path_view";
/// The path encoder's input.
pub const PATH_INPUT: &str = "path.input";
/// Encodings of steps of a path.
pub const PATH_TIME: &str = "path_time";
/// The path encoder's attention over its own outputs.
pub const PATH_MEMORY: &str = "path.memory";
/// The path encoder's feed-forward block.
pub const PATH_FORWARD: &str = "path.forward";
/// Embeddings of the words of descriptions.
pub const WORD_EMBEDDING: &str = "word_embedding";
/// The word decoder's input.
pub const WORD_INPUT: &str = "word.input";
/// Encodings of positions of words.
pub const WORD_TIME: &str = "word_time";
/// The word decoder's attention over its own outputs.
pub const WORD_MEMORY: &str = "word.memory";
/// The word decoder's attention over the path.
pub const WORD_PATH: &str = "word.path";
/// The word decoder's feed-forward block.
pub const WORD_FORWARD: &str = "word.forward";
/// The layer that scores words.
pub const PREDICTOR: &str = "predictor";

// The parts of blocks.

/// The projection of queries.
pub const QUERY: &str = "query";
/// The projection of keys.
pub const KEY: &str = "key";
/// The projection of values.
pub const VALUE: &str = "value";
/// The projection of what an attention sees.
pub const OUTPUT: &str = "output";
/// The first layer of a feed-forward block.
pub const INNER: &str = "inner";
/// Its second layer.
pub const OUTER: &str = "outer";
/// The norm at the end of a block.
pub const NORM: &str = "norm";
/// The layer between one encoding of time and the next.
pub const LINEAR: &str = "linear";

/// The name of a part of a block.
pub fn part(block: &str, part: &str) -> String {
    format!("{block}.{part}")
}
