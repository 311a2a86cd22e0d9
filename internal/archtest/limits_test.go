package archtest_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the tables of limits in docs/reference/limits.md")

// limitRow is a row of a table of limits: its cells, with %s for the value of a constant, or of a member of a composite literal, in a package.
type limitRow struct{ cells, in, name string }

// limitTables are the tables of limits in docs/reference/limits.md, each between <!-- limits NAME --> and <!-- end -->. To add a limit, add a
// row and run `make docs`. Sizes are constants above 1,000 whose rows end their %s with B.
var limitTables = []struct {
	name, head string
	rows       []limitRow
}{
	{"run", "flag | default | code", []limitRow{
		{"`--max-visits` | %s node visits | `STEP_BUDGET_EXCEEDED`", "graph/machine", "DefaultMaxVisits"},
		{"`--max-records` | %s records | `RECORD_LIMIT_EXCEEDED`", "graph", "defaultMaxRecords"},
		{"`--max-bytes` | %sB of stored records | `BYTE_LIMIT_EXCEEDED`", "graph", "defaultMaxBytes"},
		{"`--max-pending` | %s pending activities | `PENDING_LIMIT_EXCEEDED`", "graph", "defaultMaxPending"},
	}},
	{"tree", "flag | default | code", []limitRow{
		{"`--max-depth` | %s levels of subworkflows | `SUBWORKFLOW_DEPTH_EXCEEDED`", "graph", "defaultMaxDepth"},
		{"`--max-tree-runs` | %s runs | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultRuns"},
		{"`--max-tree-visits` | %s node visits | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultVisits"},
		{"`--max-tree-records` | %s records | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultRecords"},
		{"`--max-tree-bytes` | %sB of stored records | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultBytes"},
		{"`--max-tree-pending` | %s pending activities | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultPending"},
	}},
	{"documents", "what | at most | beyond it", []limitRow{
		{"definition, input, payload or output, as canonical JSON | %sB | the code of the rejected call; `ACTIVITY_OUTPUT_TOO_LARGE`", "graph", "defaultMaxDocumentBytes"},
		{"text of a definition | %sB | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxBytes"},
		{"values of a definition, aliases expanded | %s | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxValues"},
		{"jq programs of a definition | %s | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxPrograms"},
		{"text of all jq programs of a definition | %sB | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxProgramBytes"},
		{"steps of all patterns of a definition, repeats expanded (`x{1000}` has a thousand) | %s | `SCHEMA_INVALID`, `STATE_SCHEMA_INVALID`", "internal/jsonschema", "MaxPatterns"},
		{"nesting of a definition or a recorded value | %s levels | `DEFINITION_TOO_DEEP`, the code of the rejected call, `EXPRESSION_LIMIT_EXCEEDED`", "internal/jsonvalue", "MaxDepth"},
		{"reported problems of a definition | %s | further ones are omitted", "graph/definition", "MaxFindings"},
		{"subschemas of all schemas of a definition, without the state schema | %s | `SCHEMA_INVALID`", "internal/jsonschema", "MaxSubschemasTogether"},
		{"subschemas of a schema | %s | `SCHEMA_INVALID`, `STATE_SCHEMA_INVALID`", "internal/jsonschema", "MaxSubschemas"},
		{"steps to check a value against a schema, counted beforehand (about a second) | %s | as if the value broke the schema", "internal/jsonschema", "MaxCheck"},
		{"memory of such a check | %sB | the same", "internal/jsonschema", "MaxCheckBytes"},
		{"reported violations of a value | %s | further ones are omitted", "internal/jsonschema", "MaxViolations"},
		{"text of a jq program | %sB | `EXPRESSION_INVALID`", "graph/expr", "maxSource"},
		{"work of an evaluation, or of all expressions of a visit | %s units: a second or less | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Cost"},
		{"memory that these allocate | %sB | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Memory"},
		{"output values of a jq program | %s | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Outputs"},
		{"result of a jq program | %sB | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.ResultBytes"},
		{"execution id that a caller chooses | %s bytes | `VALIDATION_ERROR`", "graph/internal/admit", "MaxExecutionID"},
	}},
	{"messages", "what | at most | beyond it", []limitRow{
		{"message to the MCP server | %sB | a JSON-RPC error", "internal/mcpserver/frame", "DefaultMaxMessageBytes"},
		{"message without the arguments of a tool call; a whole batch | %sB | a JSON-RPC error", "internal/mcpserver/frame", "MaxEnvelope"},
		{"nesting of a message | %s levels | a JSON-RPC error", "internal/mcpserver/frame", "maxDepth"},
		{"memory of the arguments of a call, estimated as 320 bytes an object, 24 an element, and the text | %sB | `VALIDATION_ERROR`", "internal/calls", "maxDecoded"},
		{"MCP sessions over HTTP | %s | the longest idle one is closed", "internal/mcpserver/streamable", "maxSessions"},
		{"idle time of an MCP session | %s | it is closed", "internal/mcpserver/streamable", "idleTime"},
		{"time to receive a message over HTTP | %s | a JSON-RPC error", "internal/httpguard", "ReadTime"},
		{"`wait_ms` of a call | %s | `VALIDATION_ERROR`", "internal/calls", "MaxWait"},
		{"runs in a page of a list | %s | a cursor to the next page", "history", "maxListLimit"},
		{"line of a file to import | %sB | `IMPORT_INVALID`", "history/runfile", "MaxLineBytes"},
		{"file with settings | %sB | `USAGE_ERROR`", "internal/config", "maxSettingsBytes"},
		{"manifest, or list of step commands | %sB | `MANIFEST_INVALID`", "internal/manifest", "MaxBytes"},
		{"list of agents, or file with instructions | %sB | `AGENT_CONFIG_INVALID`", "internal/agentfile", "MaxBytes"},
		{"list of webhook targets | %sB | `WEBHOOK_CONFIG_INVALID`", "internal/webhook", "MaxBytes"},
		{"webhook targets of a run | %s | `VALIDATION_ERROR`", "graph/internal/outbox", "MaxTargets"},
		{"body of a webhook | %sB | states are omitted, and `truncated` is true", "graph/internal/outbox", "MaxBody"},
		{"concurrent attempts to a webhook target in a process | %s | others wait", "graph/internal/outbox", "atOnce"},
		{"file of a knowledge base | %sB | `KNOWLEDGE_FORMAT_UNSUPPORTED`; a search names and skips it", "delegate/agent/knowledge", "MaxFileBytes"},
		{"files of a knowledge base | %s | a search skips the rest, and says so", "delegate/agent/knowledge", "MaxFiles"},
		{"text of a knowledge base | %sB | the same", "delegate/agent/knowledge", "MaxBytes"},
		{"part of a text that an agent reads at once | %s bytes | `next_offset`", "delegate/agent/knowledge", "DefaultMaxReadBytes"},
		{"sections that a search returns | %s | the rest is counted", "delegate/agent/knowledge", "DefaultMaxSearchResults"},
		{"file of a skill | %sB | `AGENT_CONFIG_INVALID`, `SKILL_UNKNOWN`", "delegate/agent/skills", "MaxFileBytes"},
		{"body of an API call of an agent | %sB | `API_BODY_TOO_LARGE`", "delegate/agent/apicall", "DefaultMaxBodyBytes"},
		{"response to an API call | %sB | `API_RESPONSE_TOO_LARGE`", "delegate/agent/apicall", "DefaultMaxResponseBytes"},
		{"time of an API call | %s | `API_UNREACHABLE`", "delegate/agent/apicall", "DefaultTimeout"},
		{"file with a secret | %sB | `USAGE_ERROR`", "internal/config", "maxSecretBytes"},
		{"answer of a step command | %sB | `ACTIVITY_OUTPUT_TOO_LARGE`", "activities/stepcommand", "DefaultMaxOutputBytes"},
		{"logged standard error of a step command | %sB | the rest is omitted", "activities/stepcommand", "DefaultMaxLogBytes"},
		{"time of a step command | %s | `ACTIVITY_TIMEOUT`", "activities/stepcommand", "DefaultTimeout"},
		{"result of a tool | %sB | `ACTIVITY_OUTPUT_TOO_LARGE`", "activities/toolcall", "DefaultMaxOutputBytes"},
		{"tools of an MCP server | %s | `MCP_PROTOCOL_ERROR`", "activities/toolcall", "maxTools"},
		{"prompt for a model | %sB | `LLM_CONFIG_INVALID`", "activities/llmcall", "DefaultMaxPromptBytes"},
		{"answer of a model | %sB | `LLM_PROVIDER_ERROR`", "activities/chat/openaichat", "DefaultMaxAnswerBytes"},
		{"answer of an agent | %sB | `A2A_PROVIDER_ERROR`", "delegate", "DefaultMaxAnswerBytes"},
		{"definitions of the workflow directory | %s | the rest is skipped, with a warning", "internal/catalog", "MaxFiles"},
		{"text of these definitions | %sB | the same", "internal/catalog", "MaxBytes"},
		{"definition fetched by address | %sB | `VALIDATION_ERROR`", "internal/httpworkflow", "DefaultMaxBytes"},
		{"redirects to such a definition | %s | `WORKFLOW_NOT_FOUND`", "internal/httpworkflow", "maxRedirects"},
		{"time to fetch such a definition | %s | `WORKFLOW_NOT_FOUND`", "internal/httpworkflow", "DefaultTimeout"},
	}},
}

// TestReferencePage: the tables of limits in docs/reference/limits.md say what the constants say.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "docs/reference/limits.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, table := range limitTables {
		want := "| " + table.head + " |\n|---|---|---|\n"
		for _, row := range table.rows {
			want += "| " + row.text(t) + " |\n"
		}
		begin, end := "<!-- limits "+table.name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(page, begin)
		got, after, closed := strings.Cut(rest, end)
		switch {
		case !found || !closed:
			t.Fatalf("docs/reference/limits.md has no table between %s and %s", begin, end)
		case got != want && *update:
			page = before + begin + want + end + after
		case got != want:
			t.Errorf("docs/reference/limits.md, limits %s: run make docs\n%s", table.name, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// text writes the cells of a row.
func (r limitRow) text(t *testing.T) string {
	t.Helper()
	source, n := constantOf(t, r.in, r.name)
	size := strings.Contains(r.cells, "%sB")
	value := grouped(n)
	switch {
	case size && n%(1<<30) == 0:
		value = grouped(n>>30) + " Gi"
	case size && n%(1<<20) == 0:
		value = grouped(n>>20) + " Mi"
	case size && n%(1<<10) == 0:
		value = grouped(n>>10) + " Ki"
	case strings.Contains(source, "time."):
		value = regexp.MustCompile(`(\D)0s$|(h)0m0s$`).ReplaceAllString(time.Duration(n).String(), "$1$2")
	}
	return fmt.Sprintf(r.cells, value)
}

// grouped writes a number with commas, as in 10,000.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// constantOf returns the expression of a constant in a package, and its value. A name may be that of a member of a composite literal.
func constantOf(t *testing.T, pkg, name string) (source string, value int64) {
	t.Helper()
	variable, member, _ := strings.Cut(name, ".")
	fset := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var expr ast.Expr
	for _, file := range files {
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			block, ok := decl.(*ast.GenDecl)
			if !ok || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, spec := range block.Specs {
				value, _ := spec.(*ast.ValueSpec)
				for i := 0; value != nil && i < min(len(value.Names), len(value.Values)); i++ {
					if value.Names[i].Name == variable {
						expr = value.Values[i]
					}
				}
			}
		}
	}
	if literal, ok := expr.(*ast.CompositeLit); ok {
		for _, e := range literal.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == member {
				expr = kv.Value
			}
		}
	}
	if expr == nil {
		t.Fatalf("%s has no %s", pkg, name)
	}
	var text strings.Builder
	if err := printer.Fprint(&text, fset, expr); err != nil {
		t.Fatal(err)
	}
	plain := text.String()
	for unit, d := range map[string]time.Duration{"Hour": time.Hour, "Minute": time.Minute, "Second": time.Second, "Millisecond": time.Millisecond} {
		plain = regexp.MustCompile(`\btime\.`+unit+`\b`).ReplaceAllString(plain, strconv.FormatInt(int64(d), 10))
	}
	result, err := types.Eval(fset, nil, token.NoPos, plain)
	if err != nil {
		t.Fatalf("%s: %s = %s: %v", pkg, name, text.String(), err)
	}
	n, exact := constant.Int64Val(constant.ToInt(result.Value))
	if !exact {
		t.Fatalf("%s: %s = %s is no whole number", pkg, name, text.String())
	}
	return text.String(), n
}
