//! Reads a model from text. Must not know how it is served.
