//! Holds results to `bench/schema.json`: as much of JSON Schema as that file uses.

use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../bench/schema.json")).unwrap()
}

/// Fails with the place where a result is not what its schema says.
pub fn check(result: &Value) {
    let schema = schema();
    let mut wrong = Vec::new();
    validate(&schema, &schema, result, "$", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn fits(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the schema names a type {other}"),
    }
}

fn validate(root: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return validate(root, &root["$defs"][name], value, at, wrong);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| {
            let mut wrong = Vec::new();
            validate(root, choice, value, at, &mut wrong);
            wrong.is_empty()
        });
        let fitting = fitting.count();
        if fitting != 1 {
            let which = if value["soak"] == true {
                "soak"
            } else if value["comparison"] == true {
                "comparison"
            } else {
                "result"
            };
            validate(root, &root["$defs"][which], value, at, wrong);
            wrong.push(format!("{at}: fits {fitting} of the choices"));
        }
        return;
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        wrong.push(format!("{at}: {value} is none of {choices:?}"));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().map(|one| one.as_str().unwrap()).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| fits(kind, value)) {
        wrong.push(format!("{at}: {value} is no {kinds:?}"));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        wrong.push(format!("{at}: {number} is below {least}"));
    }
    if let Some(items) = value.as_array() {
        for (n, item) in items.iter().enumerate() {
            validate(root, &schema["items"], item, &format!("{at}[{n}]"), wrong);
        }
    }
    let Some(object) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        if !object.contains_key(required.as_str().unwrap()) {
            wrong.push(format!("{at}: no {required}"));
        }
    }
    for (name, value) in object {
        let place = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => wrong.push(format!("{place}: is not in the schema")),
            (Value::Null, other) => validate(root, other, value, &place, wrong),
            (property, _) => validate(root, property, value, &place, wrong),
        }
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let mut wrong = Vec::new();
    let schema = serde_json::json!({
        "type": "object", "additionalProperties": false, "required": ["n"],
        "properties": { "n": { "type": "integer", "minimum": 0 }, "words": { "type": ["string", "null"] } }
    });
    for (value, faults) in [
        (serde_json::json!({ "n": 1, "words": null }), 0),
        (serde_json::json!({ "n": -1 }), 1),
        (serde_json::json!({ "n": 1.5 }), 1),
        (serde_json::json!({ "words": 7, "more": 1 }), 3),
    ] {
        wrong.clear();
        validate(&schema, &schema, &value, "$", &mut wrong);
        assert_eq!(wrong.len(), faults, "{value}: {wrong:?}");
    }
}
