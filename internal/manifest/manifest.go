package manifest

import (
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxBytes bounds the text of a manifest.
const MaxBytes = 1 << 20

// Manifest is a valid manifest.
type Manifest struct {
	// Servers are the MCP servers by name; there is at least one.
	Servers map[string]Server
	// Agents are the delegate agents by id; nil if the manifest has no "delegateAgents", which is not the same as an
	// empty one, with which no agent is found.
	Agents map[string]Agent
}

// Server says how one MCP server is reached. Values of Env and Headers may be references to secrets; they are as written
// here.
type Server = toolcall.Server

// Agent is the tool that stands for a delegate agent.
type Agent struct{ Server, Tool string }

// Parse reads and checks a manifest. The manifest is nil if one of the findings is an error; all problems are listed,
// each with its line, in the order of the text. Keywords and pointers are those of the protocol's schema, "parse" for a
// text that is not JSON.
func Parse(text []byte) (*Manifest, problem.Findings) { return parse(text, readManifest) }

// parse reads a text with an object, and returns nil if one of the findings is an error.
func parse[T any](text []byte, read func(*jsonobject.Object) *T) (*T, problem.Findings) {
	report := jsonobject.Report{Code: problem.ManifestInvalid}
	node, faults := jsonvalue.Parse(text, 0, MaxBytes)
	for _, fault := range faults {
		code := problem.ManifestInvalid
		if fault.Kind == "syntax" || fault.Kind == "trailing" {
			code = problem.ManifestSyntax
		}
		report.Findings = append(report.Findings, problem.Finding{
			Code: code, Severity: problem.SeverityError, Message: fault.Message, Keyword: "parse",
			At: problem.Place{Pointer: fault.Pointer, Line: fault.Line, Column: fault.Column},
		})
	}
	var value *T
	if node != nil {
		if root := report.Node(node); root != nil {
			value = read(root)
		}
	}
	report.Findings.Sort()
	if report.Findings.HasErrors() {
		return nil, report.Findings
	}
	return value, report.Findings
}
