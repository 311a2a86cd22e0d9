package agentfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
	"github.com/workflows-engine/workflows-engine/schemas"
)

var listDocument = document.Kind{Schema: schemas.Agents, Code: problem.AgentConfigInvalid, MaxBytes: MaxBytes}

// list is a list as it is written.
type list struct {
	Models   map[string]Model
	Agents   map[string]writtenAgent
	settings map[string]Settings
}

// UnmarshalJSON decodes the fields of the list, those of the kinds of tools too.
func (l *list) UnmarshalJSON(text []byte) (err error) {
	var common struct {
		Models map[string]Model        `json:"models"`
		Agents map[string]writtenAgent `json:"agents"`
	}
	if err := json.Unmarshal(text, &common); err != nil {
		return err
	}
	l.Models, l.Agents = common.Models, common.Agents
	l.settings, err = settingsOf(text)
	return err
}

// writtenAgent is an agent as it is written: some fields have another form than in a configuration.
type writtenAgent struct {
	agentloop.Config
	InstructionsFile string   `json:"instructionsFile"`
	Model            string   `json:"model"`
	Models           []string `json:"models"`
	Tools            []Entry  `json:"tools"`
	Budgets          struct {
		agentloop.Budgets
		CostUSD float64 `json:"costUsd"`
	} `json:"budgets"`
	Compaction struct {
		agentloop.Compaction
		Model string `json:"model"`
	} `json:"compaction"`
	Output *struct {
		agentloop.Output
		Repairs *int `json:"repairs"`
	} `json:"output"`
}

// Parse reads and checks a list. The file is nil if one of the findings is an error; all problems are listed, each with its line, in the
// order of the text.
func Parse(text []byte, s Surroundings) (*File, problem.Findings) {
	p := parser{Surroundings: s, calls: map[string][]call{}, secretsTo: map[string]string{}}
	if p.d = listDocument.Read(text, &p.list); !p.d.Decoded() {
		return nil, p.d.Findings()
	}
	f := &File{Models: map[string]Model{}, Agents: map[string]Agent{}, Settings: p.list.settings, SecretsTo: p.secretsTo}
	for name, m := range p.list.Models {
		f.Models[name] = p.model(name, m)
	}
	for field, s := range p.list.settings {
		s.check(&p, document.At(field))
	}
	for name, e := range p.list.Agents {
		f.Agents[name] = p.agent(name, e)
	}
	if !p.checkCycles() {
		p.checkSizes()
		p.warnOfCosts(f)
	}
	if !p.d.Valid() {
		return nil, p.d.Findings()
	}
	return f, p.d.Findings()
}

// parser checks one list.
type parser struct {
	Surroundings
	d    *document.Document
	list list
	// calls are the agents that an agent calls.
	calls map[string][]call
	// secretsTo are File.SecretsTo.
	secretsTo map[string]string
}

// call is a tool that calls an agent, and its place.
type call struct{ agent, at string }

func (p *parser) directory(path string) string {
	if path = strings.TrimSpace(path); p.Absolute == nil {
		return path
	}
	return p.Absolute(path)
}

// secret checks a reference, and returns it without white space around it.
func (p *parser) secret(at, reference string) string {
	if reference = strings.TrimSpace(reference); reference != "" && p.Secret != nil {
		if err := p.Secret(reference); err != nil {
			p.d.FailWith(at, err)
		}
	}
	return reference
}

func (p *parser) model(name string, m Model) Model {
	at := document.At("models", name)
	m.Model.Model = strings.TrimSpace(m.Model.Model)
	least := m.MaxTokens
	if least == 0 {
		least = agentloop.DefaultMaxTokens
	}
	if m.MaxTokensCeiling > 0 && m.MaxTokensCeiling < least && p.d.Intact(at+"/maxTokens") {
		p.d.Fail(at+"/maxTokensCeiling", "minimum", "maxTokensCeiling is less than maxTokens, which is %d", least)
	}
	if m.Price != nil && !p.d.Has(at+"/priceUsdPerMTok/cachedInput") {
		m.Price.CachedInput = m.Price.Input
	}
	e := m.Endpoint
	if e == nil {
		if p.NoProvider != "" {
			p.d.Fail(at, "profile", "%s", p.NoProvider).Hint = "Or give the model an endpoint."
		}
		return m
	}
	e.BaseURL = strings.TrimSpace(e.BaseURL)
	if base, ok := strings.CutSuffix(strings.TrimRight(e.BaseURL, "/"), "/chat/completions"); ok {
		p.d.Fail(at+"/endpoint/baseUrl", "format", "baseUrl must not end with /chat/completions, which is appended").Hint = "Write " + base + "."
	}
	if e.KeyEnv != "" {
		e.KeyReference = "env:" + strings.TrimSpace(e.KeyEnv)
	}
	if e.KeyReference = p.secret(at+"/endpoint", e.KeyReference); e.KeyReference != "" {
		p.secretsTo["model "+name] = e.BaseURL
	}
	return m
}

func (p *parser) agent(name string, e writtenAgent) Agent {
	at := document.At("agents", name)
	a := Agent{Config: e.Config, SummaryModel: e.Compaction.Model, Tools: e.Tools}
	a.Budgets, a.Compaction = e.Budgets.Budgets, e.Compaction.Compaction
	if a.Retries != agentloop.RetriesAnew {
		a.Retries = ""
	}
	if e.InstructionsFile != "" {
		a.Instructions = p.instructions(at+"/instructionsFile", strings.TrimSpace(e.InstructionsFile))
	}
	a.Models = p.models(at, e)
	if e.SummaryModel() != "" {
		p.knownModel(at+"/compaction/model", e.SummaryModel())
	}
	if a.Fallback != nil && len(a.Models) == 1 {
		p.d.Fail(at+"/fallback", "profile", "the agent has only one model").Hint = "List the models in models, in the order of use, or leave fallback out."
	}
	if usd := e.Budgets.CostUSD; usd > 0 {
		a.Budgets.CostMicros = int(math.Round(usd * 1e6))
		for _, model := range a.Models {
			p.priced(at+"/budgets/costUsd", model)
		}
		if e.SummaryModel() != "" {
			p.priced(at+"/compaction/model", e.SummaryModel())
		}
	}
	for i, g := range a.Gates {
		at := at + document.At("gates", i)
		p.globs(at+"/tools", g.Tools)
		if g.When != "" {
			if _, err := expr.Compile(g.When); err != nil {
				p.d.Fail(at+"/when", "format", "the jq program does not compile: %v", err)
			}
		}
	}
	if o := e.Output; o != nil {
		a.Output = &o.Output
		a.Output.Repairs = 1
		if o.Repairs != nil {
			a.Output.Repairs = *o.Repairs
		}
		if _, err := jsonschema.Compile(o.Schema); err != nil {
			p.d.Fail(at+"/output/schema", "format", "the schema does not compile: %v", err)
		}
		if o.PartialAs != "" && p.d.Intact(at+"/output/schema") {
			if why := o.CheckPartial(); why != "" {
				p.d.Fail(at+"/output/partialAs", "profile", "%s", why)
			}
		}
	}
	p.tools(name, at+"/tools", a.Tools)
	return a
}

// SummaryModel is the name of the model that sums up.
func (e writtenAgent) SummaryModel() string { return e.Compaction.Model }

// instructions reads the file with the instructions of an agent.
func (p *parser) instructions(at, name string) string {
	if p.ReadFile == nil {
		return ""
	}
	text, err := p.ReadFile(name)
	switch {
	case err != nil:
		p.d.Fail(at, "profile", "the file cannot be read: %v", err)
	case len(text) > MaxBytes:
		p.d.Fail(at, "profile", "the file is larger than %d bytes", MaxBytes)
	case !utf8.Valid(text):
		p.d.Fail(at, "profile", "the file is not UTF-8 text")
	case strings.TrimSpace(string(text)) == "":
		p.d.Fail(at, "profile", "the file is blank")
	}
	return strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff"))
}

// models returns the models of an agent: those that it names, or the only one of the list.
func (p *parser) models(at string, e writtenAgent) []string {
	for i, name := range e.Models {
		p.knownModel(at+document.At("models", i), name)
	}
	models := e.Models
	if e.Model != "" {
		p.knownModel(at+"/model", e.Model)
		models = append([]string{e.Model}, models...) // the schema reports both
	}
	switch {
	case models != nil:
		return models
	case !p.d.Intact(at+"/model") || !p.d.Intact(at+"/models"):
		return nil
	case len(p.list.Models) > 1:
		p.d.Fail(at, "required", "missing field %q", "model").Hint = "Name one of " + problem.OrList(slices.Sorted(maps.Keys(p.list.Models))) + "."
	}
	return slices.Collect(maps.Keys(p.list.Models))
}

// priced checks that a model has a price, which a budget of money needs.
func (p *parser) priced(at, model string) {
	if p.unpriced(model) {
		p.d.Fail(at, "profile", "model %q has no price", model).Hint = "Give it priceUsdPerMTok, or leave costUsd out."
	}
}

// unpriced reports whether a model of the list has no price.
func (p *parser) unpriced(model string) bool {
	m, known := p.list.Models[model]
	return known && m.Price == nil && p.d.Intact(document.At("models", model, "priceUsdPerMTok"))
}

// knownModel checks that the list has a model, unknown reports that something is not there.
func (p *parser) knownModel(at, name string) {
	if _, ok := p.list.Models[name]; !ok && p.d.Intact(document.At("models", name)) {
		p.unknown(at, fmt.Sprintf("there is no model %q", name), name, slices.Sorted(maps.Keys(p.list.Models)))
	}
}

func (p *parser) unknown(at, message, name string, known []string) {
	f := p.d.Fail(at, "profile", "%s", message)
	if f.Hint = suggest.DidYouMean(name, known); f.Hint == "" && len(known) > 0 {
		f.Hint = "there is " + problem.AndList(known)
	}
}

// globs checks patterns of names.
func (p *parser) globs(at string, list []string) {
	for i, glob := range list {
		if _, err := path.Match(glob, ""); err != nil {
			p.d.Fail(at+document.At(i), "format", "invalid pattern of names %q", glob).Hint = "Write a name; * matches any characters, ? one, [a-z] one of these."
		}
	}
}
