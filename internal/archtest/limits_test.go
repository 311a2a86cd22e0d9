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
		{"`--max-bytes` | %sB of its records in the store | `BYTE_LIMIT_EXCEEDED`", "graph", "defaultMaxBytes"},
		{"`--max-pending` | %s activities awaited at once | `PENDING_LIMIT_EXCEEDED`", "graph", "defaultMaxPending"},
	}},
	{"tree", "flag | default | code", []limitRow{
		{"`--max-depth` | %s levels of subworkflows below the root | `SUBWORKFLOW_DEPTH_EXCEEDED`", "graph", "defaultMaxDepth"},
		{"`--max-tree-runs` | %s runs | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultRuns"},
		{"`--max-tree-visits` | %s node visits | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultVisits"},
		{"`--max-tree-records` | %s records | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultRecords"},
		{"`--max-tree-bytes` | %sB of records in the store | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultBytes"},
		{"`--max-tree-pending` | %s activities awaited at once | `TREE_LIMIT_EXCEEDED`", "graph/internal/run", "defaultPending"},
	}},
	{"documents", "what | at most | beyond it", []limitRow{
		{"a definition, input, payload or output, as canonical JSON | %sB | the code of the refused call; `ACTIVITY_OUTPUT_TOO_LARGE`", "graph", "defaultMaxDocumentBytes"},
		{"the text of a definition | %sB | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxBytes"},
		{"values of a definition, aliases written out | %s | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxValues"},
		{"jq programs of a definition | %s | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxPrograms"},
		{"the text of all of them | %sB | `DEFINITION_TOO_LARGE`", "graph/definition", "MaxProgramBytes"},
		{"steps of all patterns of a definition, repeats written out (`x{1000}` has a thousand) | %s | `SCHEMA_INVALID`, `STATE_SCHEMA_INVALID`", "internal/jsonschema", "MaxPatterns"},
		{"nesting of a definition, and of any value that is recorded | %s levels | `DEFINITION_TOO_DEEP`, the code of the refused call, `EXPRESSION_LIMIT_EXCEEDED`", "internal/jsonvalue", "MaxDepth"},
		{"problems that are reported of a definition | %s | the rest is left out", "graph/definition", "MaxFindings"},
		{"subschemas of all schemas of a definition but that of the state | %s | `SCHEMA_INVALID`", "internal/jsonschema", "MaxSubschemasTogether"},
		{"subschemas of a schema | %s | `SCHEMA_INVALID`, `STATE_SCHEMA_INVALID`", "internal/jsonschema", "MaxSubschemas"},
		{"steps of checking a value against a schema, counted before (about a second) | %s | the code of a value that breaks the schema, \"cannot be checked\"", "internal/jsonschema", "MaxCheck"},
		{"what such a check may hold in memory | %sB | the same", "internal/jsonschema", "MaxCheckBytes"},
		{"violations that are listed of a value | %s | the rest is left out", "internal/jsonschema", "MaxViolations"},
		{"the text of a jq program | %sB | `EXPRESSION_INVALID`", "graph/expr", "maxSource"},
		{"the work of one evaluation, or of all expressions of a visit of a node | %s units: a second or less | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Cost"},
		{"what these make | %sB | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Memory"},
		{"values that a jq program puts out | %s | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.Outputs"},
		{"the result of a jq program | %sB | `EXPRESSION_LIMIT_EXCEEDED`", "graph/expr", "defaultLimits.ResultBytes"},
		{"an execution id that a caller chooses | %s bytes | `VALIDATION_ERROR`", "graph/internal/admit", "MaxExecutionID"},
	}},
	{"doors", "what | at most | beyond it", []limitRow{
		{"a message to the MCP server | %sB | a JSON-RPC error", "internal/mcpserver/frame", "DefaultMaxMessageBytes"},
		{"what it has besides the arguments of a tool call; a batch as a whole | %sB | a JSON-RPC error", "internal/mcpserver/frame", "MaxEnvelope"},
		{"its nesting | %s levels | a JSON-RPC error", "internal/mcpserver/frame", "maxDepth"},
		{"what the arguments of a call take in memory, estimated: 320 bytes an object, 24 an element, and the text | %sB | `VALIDATION_ERROR`", "internal/calls", "maxDecoded"},
		{"sessions of clients over HTTP | %s | the one that has been idle the longest is closed", "internal/mcpserver/streamable", "maxSessions"},
		{"how long one of them may be idle | %s | it is closed", "internal/mcpserver/streamable", "idleTime"},
		{"how long a message may take to come in over HTTP | %s | a JSON-RPC error", "internal/httpguard", "ReadTime"},
		{"`wait_ms` of a call | %s | `VALIDATION_ERROR`", "internal/calls", "MaxWait"},
		{"runs in a page of a list | %s | a cursor to the next page", "history", "maxListLimit"},
		{"a line of a file to import | %sB | `IMPORT_INVALID`", "history/runfile", "MaxLineBytes"},
		{"a file with settings | %sB | `USAGE_ERROR`", "internal/config", "maxSettingsBytes"},
		{"a manifest, or a list of step commands | %sB | `MANIFEST_INVALID`", "internal/manifest", "MaxBytes"},
		{"a list of agents, or a file with instructions | %sB | `AGENT_CONFIG_INVALID`", "internal/agentfile", "MaxBytes"},
		{"a list of webhook targets | %sB | `WEBHOOK_CONFIG_INVALID`", "internal/webhook", "MaxBytes"},
		{"webhook targets that a run names | %s | `VALIDATION_ERROR`", "graph/internal/outbox", "MaxTargets"},
		{"the body of a webhook | %sB | it goes without states, and says so", "graph/internal/outbox", "MaxBody"},
		{"attempts to one webhook target at the same time, in a process | %s | the others wait", "graph/internal/outbox", "atOnce"},
		{"a file of a knowledge base | %sB | `KNOWLEDGE_FORMAT_UNSUPPORTED`; a search leaves it out, by name", "delegate/agent/knowledge", "MaxFileBytes"},
		{"files of a knowledge base | %s | a search leaves the rest out, and says so", "delegate/agent/knowledge", "MaxFiles"},
		{"their texts together | %sB | the same", "delegate/agent/knowledge", "MaxBytes"},
		{"what an agent reads of a text at once | %s bytes | `next_offset`", "delegate/agent/knowledge", "DefaultMaxReadBytes"},
		{"sections that a search returns | %s | the rest is left out, and counted", "delegate/agent/knowledge", "DefaultMaxSearchResults"},
		{"a file of a skill | %sB | `AGENT_CONFIG_INVALID`, `SKILL_UNKNOWN`", "delegate/agent/skills", "MaxFileBytes"},
		{"the body of an API call | %sB | `API_BODY_TOO_LARGE`", "delegate/agent/apicall", "DefaultMaxBodyBytes"},
		{"the response to it | %sB | `API_RESPONSE_TOO_LARGE`", "delegate/agent/apicall", "DefaultMaxResponseBytes"},
		{"its time | %s | `API_UNREACHABLE`", "delegate/agent/apicall", "DefaultTimeout"},
		{"a file with a secret | %sB | `USAGE_ERROR`", "internal/config", "maxSecretBytes"},
		{"what a step command prints as its answer | %sB | `ACTIVITY_OUTPUT_TOO_LARGE`", "activities/stepcommand", "DefaultMaxOutputBytes"},
		{"what is logged of a step command's standard error | %sB | the rest is left out", "activities/stepcommand", "DefaultMaxLogBytes"},
		{"the time of a step command | %s | `ACTIVITY_TIMEOUT`", "activities/stepcommand", "DefaultTimeout"},
		{"a tool's result | %sB | `ACTIVITY_OUTPUT_TOO_LARGE`", "activities/toolcall", "DefaultMaxOutputBytes"},
		{"tools of an MCP server | %s | `MCP_PROTOCOL_ERROR`", "activities/toolcall", "maxTools"},
		{"a prompt for a model | %sB | `LLM_CONFIG_INVALID`", "activities/llmcall", "DefaultMaxPromptBytes"},
		{"an answer of a model | %sB | `LLM_PROVIDER_ERROR`", "activities/chat/openaichat", "DefaultMaxAnswerBytes"},
		{"an answer of an agent | %sB | `A2A_PROVIDER_ERROR`", "delegate", "DefaultMaxAnswerBytes"},
		{"definitions of the workflow folder | %s | the rest is left out, with a warning", "internal/catalog", "MaxFiles"},
		{"their texts together | %sB | the same", "internal/catalog", "MaxBytes"},
		{"a definition fetched by address | %sB | `VALIDATION_ERROR`", "internal/httpworkflow", "DefaultMaxBytes"},
		{"redirects on the way to it | %s | `WORKFLOW_NOT_FOUND`", "internal/httpworkflow", "maxRedirects"},
		{"the time to fetch it | %s | `WORKFLOW_NOT_FOUND`", "internal/httpworkflow", "DefaultTimeout"},
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
