package toolcall

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxViolations limits the text about schema violations, in bytes.
const maxViolations = 2 << 10

// contract holds a tool's schemas of its arguments and its structured result. Each schema is compiled when it is first
// needed, and kept with the session.
type contract struct {
	tool *mcp.Tool
	log  *slog.Logger

	inputOnce, outputOnce sync.Once
	in, out               *schema
}

// schema is a compiled schema, nil without a usable one.
type schema jsonschema.Schema

func (c *contract) input() *schema {
	c.inputOnce.Do(func() { c.in = c.compile("inputSchema", c.tool.InputSchema) })
	return c.in
}

func (c *contract) output() *schema {
	c.outputOnce.Do(func() { c.out = c.compile("outputSchema", c.tool.OutputSchema) })
	return c.out
}

// compile compiles a schema that a tool has published. One that cannot be used, because it refers to another document
// for instance, which is never fetched, leaves the matter to the server: it knows its tools.
func (c *contract) compile(member string, raw any) *schema {
	if raw == nil {
		return nil
	}
	plain, err := jsonvalue.Normalize(raw)
	if err == nil {
		if object, ok := plain.(map[string]any); ok {
			// Servers name older drafts, out of habit; the keywords that they use mean the same in this one.
			object = maps.Clone(object)
			delete(object, "$schema")
			plain = object
		}
		var compiled *jsonschema.Schema
		if compiled, err = jsonschema.Compile(plain); err == nil {
			return (*schema)(compiled)
		}
	}
	c.log.Warn("a schema of an MCP tool cannot be used, and is not checked", logTool, c.tool.Name, logMember, member, logError, err.Error())
	return nil
}

// check describes how a value breaks the schema, "" if it does not.
func (s *schema) check(v any) string {
	if s == nil {
		return ""
	}
	return problem.Clip(jsonschema.Text((*jsonschema.Schema)(s).Validate(v)), maxViolations)
}
