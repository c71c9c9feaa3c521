//! The names of the weights of both REGEX models, besides those of the decoder that they share ([`crate::nn::decoder`]). A layer
//! called `name` has the parameters `name.weight` and `name.bias`.

// The student.

/// Embeddings of the characters of words.
pub const WORD_EMBEDDING: &str = "word_embedding";
/// Embeddings of the words of requests.
pub const REQUEST_EMBEDDING: &str = "request_embedding";
/// The LSTM that reads words.
pub const WORD_ENCODER: &str = "word_encoder";
/// The LSTM that reads requests.
pub const REQUEST_ENCODER: &str = "request_encoder";
/// The bridge from the word encoder to the request encoder.
pub const WORD_BRIDGE: &str = "word_bridge";
/// The bridge from the request encoder to the decoder.
pub const REQUEST_BRIDGE: &str = "request_bridge";
/// The decoder's attention over the request.
pub const REQUEST_ATTENTION: &str = "request_attention";
/// The decoder's attention over the word.
pub const WORD_ATTENTION: &str = "word_attention";

// The describer.

/// Embeddings of the characters of pairs of words.
pub const PAIR_EMBEDDING: &str = "pair_embedding";
/// The LSTM that reads pairs.
pub const ENCODER: &str = "encoder";
/// The bridge from the encoder to the decoder.
pub const BRIDGE: &str = "bridge";
/// The decoder's attention over the pairs.
pub const ATTENTION: &str = "attention";
