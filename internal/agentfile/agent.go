package agentfile

import (
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// What gates say.
var decisions = []string{"allow", "ask", "deny"}

func (r *reader) agent(name string, o *jsonobject.Object) (a Agent) {
	if o == nil {
		return a
	}
	a.Description = o.Get("description").Text()
	a.Instructions = r.instructions(o)
	a.Models = r.modelsOf(o)
	a.Fallback = fallback(o.Get("fallback"), len(a.Models))
	a.Stream = o.Get("stream").Bool()
	a.TurnTimeoutMs = whole(o.Get("turnTimeoutMs"), maxMs)
	a.ToolTimeoutMs = whole(o.Get("toolTimeoutMs"), maxMs)
	a.MaxConcurrency = whole(o.Get("maxToolConcurrency"), 1000)
	a.MaxDepth = whole(o.Get("maxDepth"), 64)
	a.Retry = retry(o.Get("modelRetry").Object())
	if o.Get("retries").Choice("continue", agentloop.RetriesAnew) == agentloop.RetriesAnew {
		a.Retries = agentloop.RetriesAnew
	}
	a.Tools = r.tools(name, o.Get("tools"))
	for _, v := range o.Get("gates").Elements() {
		a.Gates = append(a.Gates, gate(v.Object()))
	}
	a.Budgets = r.budgets(name, o.Get("budgets").Object(), a.Models)
	a.Repeats = repeats(o.Get("repeats").Object())
	a.Results = results(o.Get("results").Object())
	a.Compaction, a.SummaryModel = r.compaction(o.Get("compaction").Object(), a.Budgets)
	a.Output = output(o.Get("output").Object())
	o.Close()
	return a
}

// instructions are what an agent is told, in the list or in a file.
func (r *reader) instructions(o *jsonobject.Object) string {
	text, file := o.Get("instructions"), o.Get("instructionsFile")
	switch {
	case text.Present() && file.Present():
		o.Fail("oneOf", "the agent has instructions and instructionsFile").Hint = "Leave one of them out."
		return ""
	case !text.Present() && !file.Present():
		o.Missing("instructions").Hint = "Say what the agent does, in instructions or in the file that instructionsFile names."
		return ""
	case text.Present():
		return text.NonBlank()
	}
	name := strings.TrimSpace(file.NonBlank())
	if name == "" || r.ReadFile == nil {
		return ""
	}
	read, err := r.ReadFile(name)
	switch {
	case err != nil:
		file.Fail("profile", "the file cannot be read: %v", err)
	case len(read) > MaxBytes:
		file.Fail("profile", "the file is larger than %d bytes", MaxBytes)
	case !utf8.Valid(read):
		file.Fail("profile", "the file is not UTF-8 text")
	case blank(string(read)):
		file.Fail("profile", "the file is blank")
	}
	return strings.TrimSpace(strings.TrimPrefix(string(read), "\ufeff"))
}

// modelsOf are the models of an agent: the one it names, those it names, or the only one there is.
func (r *reader) modelsOf(o *jsonobject.Object) []string {
	one, several := o.Get("model"), o.Get("models")
	elements := several.Elements()
	switch {
	case one.Present() && several.Present():
		o.Fail("oneOf", "the agent has model and models").Hint = "Leave one of them out."
		return nil
	case one.Present():
		elements = []jsonobject.Value{one}
	case several.Present() && len(elements) == 0:
		several.Fail("minItems", "models names no model")
	case !several.Present():
		if len(r.models) > 1 {
			o.Missing("model").Hint = "Name one of " + problem.OrList(slices.Sorted(maps.Keys(r.models))) + "."
			return nil
		}
		return slices.Collect(maps.Keys(r.models))
	}
	var names []string
	for _, v := range elements {
		name := v.NonBlank()
		_, known := r.models[name]
		switch {
		case name == "":
		case !known && r.models != nil:
			v.Fail("profile", "there is no model %q", name).Hint = meant(name, slices.Sorted(maps.Keys(r.models)))
		case slices.Contains(names, name):
			v.Fail("uniqueItems", "model %q stands there twice", name)
		}
		names = append(names, name)
	}
	return names
}

// meant says what a name probably was to be, or what there is.
func meant(name string, known []string) string {
	if hint := suggest.DidYouMean(name, known); hint != "" {
		return hint
	}
	if len(known) == 0 {
		return ""
	}
	return "there is " + problem.AndList(known)
}

// fallback says when the next model is asked.
func fallback(v jsonobject.Value, models int) *agentloop.Fallback {
	o := v.Object()
	if o == nil {
		return nil
	}
	if models == 1 {
		v.Fail("profile", "the agent has one model, and no next one").Hint = "List the models in models, in the order in which they are asked, or leave fallback out."
	}
	f := &agentloop.Fallback{AfterTries: whole(o.Get("afterTries"), 1000), ReturnAfterMs: whole(o.Get("returnAfterMs"), 30*maxMs)}
	if on := o.Get("on"); on.Present() {
		f.On = []agentloop.Class{}
		var known []string
		for _, class := range agentloop.Classes() {
			known = append(known, string(class))
		}
		for _, class := range on.Elements() {
			f.On = append(f.On, agentloop.Class(class.Choice(known...)))
		}
	}
	o.Close()
	return f
}

func retry(o *jsonobject.Object) (t agentloop.Retry) {
	if o == nil {
		return t
	}
	t.MaxAttempts = whole(o.Get("maxAttempts"), 1000)
	t.InitialIntervalMs = whole(o.Get("initialIntervalMs"), maxMs)
	t.Coefficient, _ = o.Get("coefficient").Number(1, 1000)
	t.MaxIntervalMs = whole(o.Get("maxIntervalMs"), maxMs)
	o.Close()
	return t
}

func gate(o *jsonobject.Object) (g agentloop.Gate) {
	if o == nil {
		return g
	}
	tools := o.Require("tools")
	g.Tools = globs(tools)
	when := o.Get("when")
	if g.When = when.Text(); g.When != "" {
		if _, err := expr.Compile(g.When); err != nil {
			when.Fail("format", "the jq program does not compile: %v", err)
		}
	}
	g.Unless = o.Get("unless").Choice("read_only")
	g.Do = o.Require("do").Choice(decisions...)
	g.Reason = o.Get("reason").Text()
	g.TimeoutMs = whole(o.Get("timeoutMs"), 365*maxMs)
	o.Close()
	return g
}

// globs reads patterns of names, of which there is at least one.
func globs(v jsonobject.Value) []string {
	elements := v.Elements()
	if elements != nil && len(elements) == 0 {
		v.Fail("minItems", "the list names no tool")
	}
	var list []string
	for _, e := range elements {
		glob := e.NonBlank()
		if _, err := path.Match(glob, ""); err != nil {
			e.Fail("format", "%q is not a pattern of names", glob).Hint = "Write a name; * stands for any characters, ? for one, [a-z] for one of these."
		}
		list = append(list, glob)
	}
	return list
}

func (r *reader) budgets(agent string, o *jsonobject.Object, models []string) (b agentloop.Budgets) {
	if o == nil {
		return b
	}
	b.Turns = whole(o.Get("turns"), maxCount)
	b.ToolCalls = whole(o.Get("toolCalls"), maxCount)
	b.Tokens = whole(o.Get("tokens"), math.MaxInt32)
	b.WorkMs = whole(o.Get("workMs"), 30*maxMs)
	b.OnExceeded = o.Get("onExceeded").Choice("fail", "finish")
	b.FinishTokens = whole(o.Get("finishTokens"), maxTokens)
	cost := o.Get("costUsd")
	if usd, ok := cost.Number(1e-6, 1e6); ok {
		b.CostMicros = int(math.Round(usd * 1e6))
		r.costs[agent] = cost
		for _, name := range models {
			if m, known := r.models[name]; known && m.Price == nil {
				cost.Fail("profile", "model %q has no price", name).Hint = "Give it priceUsdPerMTok, or leave costUsd out."
			}
		}
	}
	o.Close()
	return b
}

func repeats(o *jsonobject.Object) (n agentloop.Repeats) {
	if o == nil {
		return n
	}
	n.Warn, n.Stop = whole(o.Get("warn"), maxCount), whole(o.Get("stop"), maxCount)
	o.Close()
	return n
}

func output(o *jsonobject.Object) *agentloop.Output {
	if o == nil {
		return nil
	}
	out := &agentloop.Output{Repairs: 1}
	if n, ok := o.Get("repairs").Whole(0, 10); ok {
		out.Repairs = int(n)
	}
	schema := o.Require("schema")
	if out.Schema = schema.Map(); out.Schema != nil {
		if _, err := jsonschema.Compile(out.Schema); err != nil {
			schema.Fail("format", "the schema does not compile: %v", err)
		}
	}
	partial := o.Get("partialAs")
	if out.PartialAs = partial.Text(); out.PartialAs != "" {
		if why := out.CheckPartial(); why != "" {
			partial.Fail("profile", "%s", why)
		}
	}
	o.Close()
	return out
}
