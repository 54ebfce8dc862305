//! The slow readings that the targets compare with; other tests use them too.
#![allow(dead_code)]

pub mod cookies;
pub mod json;
#[path = "../../../http/tests/literal/request.rs"]
pub mod request;
#[path = "../../../http/tests/literal/response.rs"]
pub mod response;
