//! A runner for the Rust SDK, with the line protocol of ../lines.py.

use std::io::{self, BufRead, Write};
use std::panic;

use cloudevents::binding::rdkafka::{BaseRecordExt, MessageExt, MessageRecord};
use cloudevents::event::{AttributeValue, Data, ExtensionValue};
use cloudevents::message::StructuredDeserializer;
use cloudevents::{AttributesWriter, Event, EventBuilder, EventBuilderV10};
use rdkafka::message::{Header, Headers, OwnedHeaders, OwnedMessage, Timestamp};
use rdkafka::producer::BaseRecord;
use serde_json::{json, Value};

type Answer = Result<Value, Box<dyn std::error::Error>>;

fn main() {
    panic::set_hook(Box::new(|_| {})); // a panic is an answer, not output
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        let task: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match panic::catch_unwind(|| solve(&task)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => json!({ "error": error.to_string() }),
            Err(_) => json!({ "error": "panic" }),
        };
        writeln!(out, "{answer}").unwrap();
    }
}

fn solve(task: &Value) -> Answer {
    match text(&task["op"]) {
        "decode" => decode(&task["record"]),
        _ => encode(task),
    }
}

// --- reading ---

fn decode(record: &Value) -> Answer {
    let mut headers = OwnedHeaders::new();
    for header in record["headers"].as_array().unwrap() {
        let value = bytes(&header[1]);
        headers = headers.insert(Header { key: text(&header[0]), value: value.as_ref() });
    }
    let (key, value) = (bytes(&record["key"]), bytes(&record["value"]));
    let message = OwnedMessage::new(value, key, "topic".into(), Timestamp::NotAvailable, 0, 0, Some(headers));
    Ok(json!({ "event": describe(&message.to_event()?) }))
}

fn describe(event: &Event) -> Value {
    let attributes: Vec<Value> = event.iter().map(|(name, value)| json!([name, kind(&value), value.to_string()])).collect();
    let data = event.data().map(|data| match data {
        Data::Binary(bytes) => json!({ "kind": "bytes", "hex": hex::encode(bytes) }),
        Data::String(text) => json!({ "kind": "text", "hex": hex::encode(text) }),
        Data::Json(value) => json!({ "kind": "json", "hex": hex::encode(value.to_string()) }),
    });
    json!({ "attributes": attributes, "data": data })
}

fn kind(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::Boolean(_) => "Boolean",
        AttributeValue::Integer(_) => "Integer",
        AttributeValue::Binary(_) => "Binary",
        AttributeValue::URI(_) => "URI",
        AttributeValue::URIRef(_) => "URI-reference",
        AttributeValue::Time(_) => "Timestamp",
        AttributeValue::String(_) | AttributeValue::SpecVersion(_) => "String",
    }
}

// --- writing ---

fn encode(task: &Value) -> Answer {
    let event = build(&task["event"])?;
    let made = match text(&task["mode"]) {
        "binary" => MessageRecord::from_event(event)?,
        _ => StructuredDeserializer::deserialize_structured(event, MessageRecord::new())?,
    };
    let key = bytes(&task["key"]);
    let mut record = BaseRecord::to("topic").message_record(&made)?;
    if let Some(key) = &key {
        record = record.key(key);
    }
    let headers: Vec<Value> = record.headers.iter().flat_map(|headers| headers.iter())
        .map(|header| json!([header.key, header.value.map(hex::encode)])).collect();
    Ok(json!({ "record": {
        "key": record.key.map(|key: &Vec<u8>| hex::encode(key)),
        "value": record.payload.map(hex::encode),
        "headers": headers,
    } }))
}

fn build(given: &Value) -> Result<Event, Box<dyn std::error::Error>> {
    let mut builder = EventBuilderV10::new();
    let (mut content_type, mut schema) = (None, None);
    for attribute in given["attributes"].as_array().unwrap() {
        let value = text(&attribute[2]);
        builder = match text(&attribute[0]) {
            "specversion" => builder,
            "id" => builder.id(value),
            "source" => builder.source(value),
            "type" => builder.ty(value),
            "subject" => builder.subject(value),
            "time" => builder.time(value),
            "datacontenttype" => {
                content_type = Some(value.to_string());
                builder
            }
            "dataschema" => {
                schema = Some(value.parse::<url::Url>()?);
                builder
            }
            name => builder.extension(name, extension(text(&attribute[1]), value)?),
        };
    }
    let mut event = builder.build()?;
    event.set_datacontenttype(content_type);
    event.set_dataschema(schema);
    if !given["data"].is_null() {
        event.set_data_unchecked(data(&given["data"])?);
    }
    Ok(event)
}

fn extension(kind: &str, text: &str) -> Result<ExtensionValue, Box<dyn std::error::Error>> {
    Ok(match kind {
        "Boolean" => ExtensionValue::Boolean(text == "true"),
        "Integer" => ExtensionValue::Integer(text.parse()?),
        _ => ExtensionValue::String(text.into()), // the SDK has no other types
    })
}

fn data(given: &Value) -> Result<Data, Box<dyn std::error::Error>> {
    let bytes = bytes(&given["hex"]).unwrap();
    Ok(match text(&given["kind"]) {
        "json" => Data::Json(serde_json::from_slice(&bytes)?),
        "text" => Data::String(String::from_utf8(bytes)?),
        _ => Data::Binary(bytes),
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(digits: &Value) -> Option<Vec<u8>> {
    digits.as_str().map(|digits| hex::decode(digits).unwrap())
}
