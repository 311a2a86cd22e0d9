package definition

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// compileNode compiles the fields common to all nodes, and the config by the function of its type.
func (c *compiler) compileNode(v *vertex) {
	if !v.sound {
		c.checkReferences(v)
		return
	}
	before := len(c.findings)
	defer func() {
		if v.strangers {
			c.findings = append(c.findings[:before], slices.DeleteFunc(c.findings[before:], dependsOnAbsent)...)
			c.faults = slices.DeleteFunc(c.faults, func(f fault) bool { return f.vertex == v && dependsOnAbsent(f.finding) })
		}
	}()
	c.compileRetry(v)
	c.compileTimeout(v)
	c.compileHeartbeat(v)
	c.compileQueue(v)
	c.compileDeadline(v)
	c.compileMap(v)
	x := config{c, v, v.json.Get("config"), v.at.member("config"), v.node.Config}
	if x.json == nil {
		x.json = &jsonvalue.Node{Kind: jsonvalue.Object, Line: v.json.Line, Column: v.json.Column}
	}
	v.node.Type.Info().compile(&x)
	c.compileTemplates(v)
	c.compileKeep(v)
}

// dependsOnAbsent reports whether a finding about a node may follow from a field that the node lacks: all but wrong ids, programs and schemas.
func dependsOnAbsent(f problem.Finding) bool {
	return f.Code != problem.UnknownNode && f.Code != problem.ExpressionInvalid && f.Code != problem.SchemaInvalid
}

// config is a node's config while it is compiled: its place, and its value as plain JSON.
type config struct {
	c    *compiler
	v    *vertex
	json *jsonvalue.Node
	at   *path
	raw  map[string]any
}

// text returns a text member, "" if it is absent.
func (x *config) text(name string) string {
	s, _ := x.raw[name].(string)
	return s
}

func (x *config) fatal(code problem.Code, name, message, hint string) {
	x.c.fatal(code, x.json.Get(name), x.at.member(name), x.v, message, hint)
}

func (x *config) warn(code problem.Code, name, message, hint string) {
	x.c.warn(code, x.json.Get(name), x.at.member(name), x.v, message, hint)
}

// ignored reports a member that nothing reads, if it is there.
func (x *config) ignored(name, message string) {
	x.c.ignoredMember(x.json, x.at, x.v, name, message)
}

// timeout reads the timeout of an interrupt, a parallel node or a wait for a signal, 0 without one. The protocol takes any text there
// and the reference engine never reads it, so an invalid duration must not fail a run: it is ignored. Where the extension
// on_timeout is used, it is an error.
func (x *config) timeout(otherwise string) time.Duration {
	n := x.json.Get("timeout")
	if n == nil {
		return 0
	}
	d, err := ParseDuration(n.Str)
	hint := hintOf(err)
	switch {
	case err != nil && (x.v.node.Type == Wait || x.v.json.Get("on_timeout") != nil):
		x.c.fail(problem.DurationInvalid, n, x.at.member("timeout"), x.v, err.Error(), hint)
	case expr.TrimSpace(n.Str) == "":
		x.warn(problem.ConfigBlank, "timeout", "a blank timeout counts as none: "+otherwise, hint)
	case err != nil:
		x.c.refuse(problem.DurationInvalid, n, x.at.member("timeout"), x.v, err.Error()+", so there is no timeout: "+otherwise, hint)
	case d == 0:
		x.warn(problem.DurationZero, "timeout", "a timeout of 0 counts as none: "+otherwise, "leave it out, or give it some time")
	}
	if err != nil {
		return 0
	}
	return d
}

// err is the problem that a node meets when it is reached.
func (x *config) err(code problem.Code, name, format string, args ...any) *problem.Error {
	return problem.New(code, format, args...).
		WithPlace(problem.Place{NodeID: x.v.node.ID, Pointer: x.at.member(name).pointer()})
}

// schemaUse is how a schema is used.
type schemaUse uint8

const (
	// checked: as the protocol's engine does, which fails the node if the schema does not compile.
	checked schemaUse = iota
	// checkedHere: the protocol's engine never uses the schema, so formats are asserted, and one that does not compile is an error.
	checkedHere
	// unused: nothing is checked. Problems are warnings.
	unused
)

// schema compiles a schema member, nil without an error if it is absent or not an object.
func (x *config) schema(name string, use schemaUse) (*jsonschema.Schema, error) {
	raw, ok := x.raw[name].(map[string]any)
	if !ok {
		return nil, nil
	}
	n, at := x.json.Get(name), x.at.member(name)
	s, err := jsonschema.CompileWith(raw, jsonschema.Options{Together: &x.c.schemas, AssertFormat: use == checkedHere})
	if err != nil {
		severity := problem.SeverityWarning
		if use == checkedHere && !x.c.options.Stored && !x.c.options.Protocol {
			severity = problem.SeverityError
		}
		for _, f := range schemaFindings(problem.SchemaInvalid, severity, err, n, at, x.v) {
			if use == checked {
				x.c.fault(f, x.v)
			} else {
				x.c.findings = append(x.c.findings, f)
			}
		}
		x.v.blocked = x.v.blocked || use == checked
		return nil, x.err(problem.SchemaInvalid, name, "%s does not compile: %s", name, err)
	}
	x.c.noteSchema(s, n, at, x.v, use)
	return s, nil
}

// program compiles a jq program that fails the node where it is wrong.
func (x *config) program(n *jsonvalue.Node, at *path) *expr.Program {
	p, f := x.c.jq(n, at, x.v)
	if f != nil {
		x.v.blocked = true
		x.c.fault(*f, x.v)
	}
	return p
}

// jq compiles the program at a text. If it is blank or wrong, the program given fails whenever it is evaluated, and
// the finding says why.
func (c *compiler) jq(n *jsonvalue.Node, at *path, v *vertex) (*expr.Program, *problem.Finding) {
	place := problem.Place{NodeID: v.node.ID, Pointer: at.pointer()}
	if expr.TrimSpace(n.Str) == "" {
		f := finding(problem.ConfigBlank, problem.SeverityWarning, n, at.pointer(), v, "the program is blank",
			`write a jq program, for example ".name"`)
		return expr.Failing(n.Str, problem.New(problem.ExpressionInvalid, "the program is blank").WithPlace(place)), &f
	}
	if c.programs++; c.programs > MaxPrograms || c.programBytes+len(n.Str) > MaxProgramBytes {
		return c.tooManyPrograms(n, at, v)
	}
	c.programBytes += len(n.Str)
	p, err := expr.Compile(n.Str)
	if err != nil {
		f := finding(problem.ExpressionInvalid, problem.SeverityWarning, n, at.pointer(), v, err.Error(), hintOf(err))
		return expr.Failing(n.Str, problem.New(problem.ExpressionInvalid, "%v", err).WithPlace(place)), &f
	}
	c.addSource(p, at, v)
	return p, nil
}

func (c *compiler) addSource(p *expr.Program, at *path, v *vertex) {
	c.sources = append(c.sources, Source{Node: v.node, Pointer: at.pointer(), Program: p})
}

func (c *compiler) compileTimeout(v *vertex) {
	n, at := v.json.Get("timeout"), v.at.member("timeout")
	if n == nil {
		return
	}
	if !v.node.Type.Info().Attempted() {
		message := "only " + attemptedTypes() + " nodes have a timeout"
		if v.node.Type == Interrupt || v.node.Type == Parallel {
			message = "the timeout of such a node belongs into its config"
		}
		c.refuse(problem.FieldIgnored, n, at, v, message, "")
		return
	}
	if expr.TrimSpace(n.Str) == "" {
		c.warn(problem.ConfigBlank, n, at, v, "a blank timeout counts as none", durationHint)
		return
	}
	d, err := ParseDuration(n.Str)
	if err != nil {
		v.node.TimeoutErr = err
		c.invalidDuration(err, n, at, v)
		return
	}
	if d == 0 {
		c.warn(problem.DurationZero, n, at, v, "a timeout of 0 counts as none here; other engines end the activity at once",
			"leave it out, or give the activity some time")
	}
	v.node.Timeout = d
}

// invalidDuration reports an invalid duration as a fault that blocks the node, whose error gets the place.
func (c *compiler) invalidDuration(err error, n *jsonvalue.Node, at *path, v *vertex) {
	if e, ok := problem.As(err); ok {
		e.At = problem.Place{NodeID: v.node.ID, Pointer: at.pointer()}
	}
	c.fatal(problem.DurationInvalid, n, at, v, err.Error(), hintOf(err))
}

// hintOf returns the hint of an error, or "".
func hintOf(err error) string {
	if e, ok := problem.As(err); ok {
		return e.Hint
	}
	return ""
}

// ignoredMember reports a member of n that nothing reads, if it is there.
func (c *compiler) ignoredMember(n *jsonvalue.Node, at *path, v *vertex, name, message string) {
	for _, m := range n.Members {
		if m.Name == name {
			c.ignored(m, at, v, message, "")
		}
	}
}

// compileRetry reads a retry policy (spec: execution, 8.3). A wrong interval is met only when an attempt has failed, so
// it does not block the node.
func (c *compiler) compileRetry(v *vertex) {
	n, at := v.json.Get("retry"), v.at.member("retry")
	if n == nil {
		return
	}
	if !v.node.Type.Info().Attempted() {
		c.refuse(problem.FieldIgnored, n, at, v, "only "+attemptedTypes()+" nodes are retried", "")
		return
	}
	r := &Retry{MaxAttempts: int(math.Min(n.Get("max_attempts").Num, math.MaxInt32)), Coefficient: 1}
	r.Initial, _ = c.retryInterval(r, n, at, v, "initial_interval")
	r.Max, r.capped = c.retryInterval(r, n, at, v, "max_interval")
	if f := n.Get("backoff_coefficient"); f != nil {
		r.Coefficient = f.Num + 0
		if r.Coefficient < 0 {
			r.Coefficient = 1
		}
	}
	if f := n.Get("jitter"); f != nil {
		r.Jitter = f.Num + 0
	}
	if codes := n.Get("non_retryable_errors"); codes != nil {
		for _, e := range codes.Elements {
			r.NonRetryable = append(r.NonRetryable, e.Str)
		}
	}
	v.node.Retry = r
}

// retryInterval reads an interval; a blank one counts as absent.
func (c *compiler) retryInterval(r *Retry, n *jsonvalue.Node, at *path, v *vertex, name string) (d time.Duration, given bool) {
	text := n.Get(name)
	if text == nil || expr.TrimSpace(text.Str) == "" {
		return 0, false
	}
	d, err := ParseDuration(text.Str)
	if err != nil {
		if r.Err == nil {
			r.Err = fmt.Errorf("retry.%s: %w", name, err)
		}
		message := err.Error() + ": the node fails where it would be tried again after a pause"
		c.refuse(problem.DurationInvalid, text, at.member(name), v, message, durationFix(expr.TrimSpace(text.Str)))
		return 0, false
	}
	return d, true
}
