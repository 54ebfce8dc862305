//! The slow readings that the targets compare with; other tests use them too.
#![allow(dead_code)]

#[path = "../../tests/literal/cookies.rs"]
pub mod cookies;
#[path = "../../tests/literal/json.rs"]
pub mod json;
#[path = "../../tests/literal/request.rs"]
pub mod request;
#[path = "../../tests/literal/response.rs"]
pub mod response;
