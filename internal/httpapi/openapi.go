package httpapi

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/format"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// spoken replaces names of MCP tools in descriptions, which the tools share.
var spoken = strings.NewReplacer("workflow_submit_activity", ":submit_activity", "see workflow_status", "see getExecution",
	"copy it from next", "interrupt_id of pending", "; large parts are references", "", "Cut short: ask with node_id.", "Cut short.")

// OpenAPI returns the description of the API, OpenAPI 3.1, as text. version is that of the program.
func OpenAPI(version string) []byte {
	paths, at := jsonvalue.Ordered{}, map[string]int{}
	for _, op := range operations("") {
		i, found := at[op.path]
		if !found {
			i = len(paths)
			at[op.path] = i
			paths.Put(op.path, jsonvalue.Ordered{})
		}
		methods := paths[i].Value.(jsonvalue.Ordered)
		methods.Put(strings.ToLower(op.method), op.describe())
		paths[i].Value = methods
	}
	var codes []string
	for _, group := range authoring.CodeGroups() {
		for _, c := range group.Codes {
			codes = append(codes, c.Name)
		}
	}
	failed := calls.Object([]calls.Property{calls.Required("error", calls.Object([]calls.Property{
		calls.Required("code", calls.OneOf("What is wrong, for programs: docs/reference/codes.md explains each.", codes...)), calls.Required("message", calls.Str("What is wrong, for people.")),
		calls.Required("details", calls.Described("More about it.", []calls.Property{
			calls.Optional("hint", calls.Str("What to do.")), calls.Optional("execution_id", calls.Str("The run.")), calls.Optional("node_id", calls.Str("The node.")),
			calls.Optional("errors", calls.Describe("array", "The mistakes of a definition or an input.")), calls.Optional("reason", calls.Str("A finer code.")),
		}, false)),
	}, false))}, false)
	document := jsonvalue.Ordered{
		{"openapi", "3.1.0"},
		{"info", jsonvalue.Ordered{{"title", "workflows-engine"}, {"version", version}, {"summary", "Start, answer and read runs of workflows."}}},
		{"security", []jsonvalue.Ordered{{{"token", []any{}}}}},
		{"paths", paths},
		{"components", jsonvalue.Ordered{
			{"schemas", jsonvalue.Ordered{{"Error", failed}}},
			{"responses", jsonvalue.Ordered{{"Error", jsonvalue.Ordered{{"description", "The call was refused or has failed."},
				{"content", jsonvalue.Ordered{{"application/json", jsonvalue.Ordered{{"schema", jsonvalue.Ordered{{"$ref", "#/components/schemas/Error"}}}}}}}}}}},
			{"securitySchemes", jsonvalue.Ordered{{"token", jsonvalue.Ordered{{"type", "http"}, {"scheme", "bearer"}}}}},
		}},
	}
	return format.Value([]byte(spoken.Replace(string(document.Append(nil)))))
}

// describe is an operation in the form of OpenAPI.
func (op *operation) describe() jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"operationId", op.id}, {"summary", op.summary}}
	if op.path == "/healthz" {
		m.Put("security", []any{})
	}
	var parameters []jsonvalue.Ordered
	for _, match := range parameter.FindAllStringSubmatch(op.path, -1) {
		about := "Name, name@version or hash of a definition."
		if match[1] == "exec_id" {
			about = "Id of the run, each colon as %3A. An id that is ., .. or empty is sent as - with the parameter id."
		}
		parameters = append(parameters, jsonvalue.Ordered{{"name", match[1]}, {"in", "path"}, {"required", true}, {"description", about}, {"schema", jsonvalue.Ordered{{"type", "string"}}}})
	}
	if op.ofRun() {
		parameters = append(parameters, jsonvalue.Ordered{{"name", "id"}, {"in", "query"}, {"description", "Id of the run, if the path has - in its place."}, {"schema", jsonvalue.Ordered{{"type", "string"}}}})
	}
	for _, p := range op.params {
		parameters = append(parameters, jsonvalue.Ordered{{"name", p.Name}, {"in", "query"}, {"schema", p.Schema}})
	}
	if op.creates && op.id != "registerWorkflow" && strings.HasPrefix(op.id, "start") {
		parameters = append(parameters, jsonvalue.Ordered{{"name", "Idempotency-Key"}, {"in", "header"}, {"description", "Becomes the execution_id if none is given; a repeated start then answers with the run."}, {"schema", calls.Text("")}})
	}
	if op.id == "listEvents" {
		parameters = append(parameters, jsonvalue.Ordered{{"name", "Last-Event-ID"}, {"in", "header"}, {"description", "seq of the last record of a stream that is continued."}, {"schema", jsonvalue.Ordered{{"type", "string"}}}})
	}
	if len(parameters) > 0 {
		m.Put("parameters", parameters)
	}
	if op.request != nil {
		m.Put("requestBody", jsonvalue.Ordered{{"content", jsonvalue.Ordered{{"application/json", jsonvalue.Ordered{{"schema", calls.Object(op.request, true)}}}}}})
	}
	content := jsonvalue.Ordered{}
	if op.answer != nil {
		content.Put("application/json", jsonvalue.Ordered{{"schema", calls.Object(op.answer, false)}})
	}
	for _, media := range op.media {
		content.Put(media, jsonvalue.Ordered{})
	}
	responses := jsonvalue.Ordered{{"200", jsonvalue.Ordered{{"description", "Done, also if it had been done before."}, {"content", content}}}}
	if op.creates {
		responses.Put(strconv.Itoa(201), jsonvalue.Ordered{{"description", "Created."}, {"content", content}})
	}
	if op.path == "/healthz" {
		responses.Put("503", jsonvalue.Ordered{{"description", "The server does not work."}})
	} else {
		responses.Put("default", jsonvalue.Ordered{{"$ref", "#/components/responses/Error"}})
	}
	m.Put("responses", responses)
	return m
}
