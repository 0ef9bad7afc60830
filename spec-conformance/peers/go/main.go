// A runner for the Go SDK, with the line protocol of ../lines.py.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sort"
	"time"

	"github.com/IBM/sarama"
	_ "github.com/cloudevents/sdk-go/binding/format/protobuf/v2"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

type record struct {
	Key     *string      `json:"key"`
	Value   *string      `json:"value"`
	Headers [][2]*string `json:"headers"`
}

type data struct {
	Kind string `json:"kind"`
	Hex  string `json:"hex"`
}

type ce struct {
	Attributes [][3]string `json:"attributes"`
	Data       *data       `json:"data"`
}

type task struct {
	Op     string  `json:"op"`
	Record *record `json:"record"`
	Event  *ce     `json:"event"`
	Mode   string  `json:"mode"`
	Format string  `json:"format"`
	Key    *string `json:"key"`
}

type answer struct {
	Record *record `json:"record,omitempty"`
	Event  *ce     `json:"event,omitempty"`
	Error  string  `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(solve(lines.Bytes())); err != nil {
			panic(err)
		}
		out.Flush()
	}
}

func solve(line []byte) (result answer) {
	defer func() {
		if problem := recover(); problem != nil {
			result = answer{Error: fmt.Sprint("panic: ", problem)}
		}
	}()
	var job task
	if err := json.Unmarshal(line, &job); err != nil {
		return answer{Error: err.Error()}
	}
	var err error
	if job.Op == "decode" {
		result.Event, err = decode(job.Record)
	} else {
		result.Record, err = encode(&job)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return result
}

func decode(input *record) (*ce, error) {
	message := &sarama.ConsumerMessage{Topic: "topic", Key: raw(input.Key), Value: raw(input.Value)}
	for _, header := range input.Headers {
		message.Headers = append(message.Headers, &sarama.RecordHeader{Key: []byte(*header[0]), Value: raw(header[1])})
	}
	read, err := binding.ToEvent(context.Background(), kafka_sarama.NewMessageFromConsumerMessage(message))
	if err != nil {
		return nil, err
	}
	if err := read.Validate(); err != nil { // as the client validates received events
		return nil, err
	}
	return describe(read)
}

func describe(read *event.Event) (*ce, error) {
	described := &ce{Attributes: [][3]string{
		{"specversion", "String", read.SpecVersion()},
		{"id", "String", read.ID()},
		{"source", "URI-reference", read.Source()},
		{"type", "String", read.Type()},
	}}
	add := func(name, kind, text string) {
		if text != "" {
			described.Attributes = append(described.Attributes, [3]string{name, kind, text})
		}
	}
	add("datacontenttype", "String", read.DataContentType())
	add("dataschema", "URI", read.DataSchema())
	add("subject", "String", read.Subject())
	if !read.Time().IsZero() {
		add("time", "Timestamp", read.Time().Format(time.RFC3339Nano))
	}
	for name, value := range read.Extensions() {
		text, err := types.Format(value)
		if err != nil {
			return nil, err
		}
		described.Attributes = append(described.Attributes, [3]string{name, typeOf(value), text})
	}
	if read.Data() != nil {
		described.Data = &data{Kind: "bytes", Hex: hex.EncodeToString(read.Data())}
	}
	return described, nil
}

func typeOf(value any) string {
	switch value.(type) {
	case bool:
		return "Boolean"
	case int32:
		return "Integer"
	case []byte:
		return "Binary"
	case types.URI:
		return "URI"
	case types.URIRef:
		return "URI-reference"
	case types.Timestamp:
		return "Timestamp"
	}
	return "String"
}

func encode(job *task) (*record, error) {
	made, err := build(job.Event)
	if err != nil {
		return nil, err
	}
	if err := made.Validate(); err != nil { // as the client validates sent events
		return nil, err
	}
	ctx := binding.WithForceBinary(context.Background())
	message := binding.ToMessage(made)
	if job.Mode == "structured" {
		ctx = binding.WithForceStructured(context.Background())
		if job.Format != "json" {
			ctx = binding.UseFormatForEvent(ctx, format.Lookup("application/cloudevents+"+job.Format))
		}
	}
	written := &sarama.ProducerMessage{Topic: "topic"}
	if job.Key != nil {
		written.Key = sarama.ByteEncoder(raw(job.Key))
	}
	if err := kafka_sarama.WriteProducerMessage(ctx, message, written); err != nil {
		return nil, err
	}
	return recordOf(written)
}

func build(input *ce) (*event.Event, error) {
	made := event.New()
	contentType := ""
	for _, attribute := range input.Attributes {
		name, kind, text := attribute[0], attribute[1], attribute[2]
		switch name {
		case "specversion":
			made.SetSpecVersion(text)
		case "id":
			made.SetID(text)
		case "source":
			made.SetSource(text)
		case "type":
			made.SetType(text)
		case "datacontenttype":
			contentType = text
			made.SetDataContentType(text)
		case "dataschema":
			made.SetDataSchema(text)
		case "subject":
			made.SetSubject(text)
		case "time":
			parsed, err := types.ParseTime(text)
			if err != nil {
				return nil, err
			}
			made.SetTime(parsed)
		default:
			value, err := typed(kind, text)
			if err != nil {
				return nil, err
			}
			made.SetExtension(name, value)
		}
	}
	if input.Data == nil {
		return &made, nil
	}
	return &made, setData(&made, contentType, input.Data)
}

func setData(made *event.Event, contentType string, input *data) error {
	bytes := raw(&input.Hex)
	if input.Kind == "bytes" {
		return made.SetData(contentType, bytes)
	}
	var value any = string(bytes)
	if input.Kind == "json" {
		value = json.RawMessage(bytes)
	}
	return made.SetData(contentType, value)
}

func typed(kind, text string) (any, error) {
	switch kind {
	case "Boolean":
		return types.ParseBool(text)
	case "Integer":
		return types.ParseInteger(text)
	case "Binary":
		return types.ParseBinary(text)
	case "URI":
		parsed, err := url.Parse(text)
		return parsed, err
	case "URI-reference":
		return types.ParseURIRef(text), nil
	case "Timestamp":
		return types.ParseTime(text)
	}
	return text, nil
}

func recordOf(written *sarama.ProducerMessage) (*record, error) {
	key, err := encoded(written.Key)
	if err != nil {
		return nil, err
	}
	value, err := encoded(written.Value)
	if err != nil {
		return nil, err
	}
	made := &record{Key: key, Value: value, Headers: [][2]*string{}}
	for _, header := range written.Headers {
		name := string(header.Key)
		made.Headers = append(made.Headers, [2]*string{&name, digits(header.Value)})
	}
	sort.Slice(made.Headers, func(a, b int) bool { return *made.Headers[a][0] < *made.Headers[b][0] })
	return made, nil
}

func encoded(encoder sarama.Encoder) (*string, error) {
	if encoder == nil {
		return nil, nil
	}
	bytes, err := encoder.Encode()
	return digits(bytes), err
}

func digits(bytes []byte) *string {
	if bytes == nil {
		return nil
	}
	text := hex.EncodeToString(bytes)
	return &text
}

func raw(digits *string) []byte {
	if digits == nil {
		return nil
	}
	bytes, err := hex.DecodeString(*digits)
	if err != nil {
		panic(err)
	}
	return append([]byte{}, bytes...)
}
