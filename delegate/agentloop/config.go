package agentloop

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Config is a resolved agent, without secrets: all settings that affect its behavior. It is recorded with its first step, so that a changed file
// does not change a running agent. Zero fields have the defaults given beside them.
type Config struct {
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Instructions string `json:"instructions"`
	// Models are asked in order: the next one after a failure that Fallback names.
	Models []Model `json:"models"`
	// Fallback configures when the next model is asked; nil means the default if there is more than one model.
	Fallback       *Fallback `json:"fallback,omitempty"`
	Stream         bool      `json:"stream,omitempty"`
	TurnTimeoutMs  int       `json:"turnTimeoutMs,omitempty"`      // 300,000; the driver's
	ToolTimeoutMs  int       `json:"toolTimeoutMs,omitempty"`      // 60,000; the driver's
	MaxConcurrency int       `json:"maxToolConcurrency,omitempty"` // 10
	MaxDepth       int       `json:"maxDepth,omitempty"`           // 5; the root's counts
	Retry          Retry     `json:"modelRetry"`
	Gates          []Gate    `json:"gates,omitempty"`
	Budgets        Budgets   `json:"budgets"`
	Repeats        Repeats   `json:"repeats"`
	Results        Results   `json:"results"`
	// Compaction configures when and how a long conversation is shortened.
	Compaction Compaction `json:"compaction"`
	Output     *Output    `json:"output,omitempty"`
	// AskPerson offers the tool ask_person.
	AskPerson bool `json:"askPerson,omitempty"`
	// Retries is where an attempt starts after a failed one: RetriesAnew starts from the beginning; "" continues where that one
	// ended, if it called tools that do more than read.
	Retries string `json:"retries,omitempty"`
	// Agents are offered as tools agent__<name>.
	Agents []Sub `json:"agents,omitempty"`
	// Hooks names the hooks that the driver has.
	Hooks Hooks `json:"hooks"`
}

// RetriesAnew is a value of Config.Retries: each attempt starts from the beginning.
const RetriesAnew = "anew"

// Model is a model that an agent asks.
type Model struct {
	// Name is that of the configuration, Model the provider's.
	Name  string `json:"name,omitempty"`
	Model string `json:"model"`
	// ContextTokens is how much the model takes, prompt and answer together; 0 means unknown until the model rejects a conversation.
	ContextTokens    int      `json:"contextTokens,omitempty"`
	MaxTokens        int      `json:"maxTokens,omitempty"`        // 8,192
	MaxTokensCeiling int      `json:"maxTokensCeiling,omitempty"` // 4 × MaxTokens
	Temperature      *float64 `json:"temperature,omitempty"`
	// TopP, Seed and Stop are the provider's defaults where they are nil.
	TopP  *float64 `json:"topP,omitempty"`
	Seed  *int     `json:"seed,omitempty"`
	Stop  []string `json:"stop,omitempty"`
	Price *Price   `json:"priceUsdPerMTok,omitempty"`
}

// Price is in US dollars per million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cachedInput"`
	Output      float64 `json:"output"`
}

// Retry is how often and when a model is asked again.
type Retry struct {
	MaxAttempts       int     `json:"maxAttempts,omitempty"`       // 5
	InitialIntervalMs int     `json:"initialIntervalMs,omitempty"` // 1,000
	Coefficient       float64 `json:"coefficient,omitempty"`       // 2
	MaxIntervalMs     int     `json:"maxIntervalMs,omitempty"`     // 60,000
}

// Budgets limit an agent together with its sub-agents. Zero fields of Tokens and CostMicros mean no limit.
type Budgets struct {
	Turns      int `json:"turns,omitempty"`     // 50
	ToolCalls  int `json:"toolCalls,omitempty"` // 200
	Tokens     int `json:"tokens,omitempty"`
	CostMicros int `json:"costMicros,omitempty"`
	WorkMs     int `json:"workMs,omitempty"` // 1,800,000
	// OnExceeded is "fail", or "finish": one more turn without tools, for an early answer. Tokens and CostMicros keep room for it.
	OnExceeded string `json:"onExceeded,omitempty"`
	// FinishTokens is how long that answer may be at least, besides its prompt.
	FinishTokens int `json:"finishTokens,omitempty"` // 1,024
}

// Repeats are the numbers of repetitions of a call after which the model is warned, and the agent ends.
type Repeats struct {
	Warn int `json:"warn,omitempty"` // 3
	Stop int `json:"stop,omitempty"` // 5
}

// Results limits how much of a result the model sees and the journal keeps.
type Results struct {
	// MaxChars is the largest part of a result that is shown at once, by fetch_result too.
	MaxChars int `json:"maxChars,omitempty"` // 100,000
	// OffloadBytes is the largest result that is shown in full, as canonical JSON. A larger result is shown as a preview with a ref for
	// fetch_result. 0 shows all results in full.
	OffloadBytes int `json:"offloadBytes,omitempty"`
	// MaxBytes is the largest result that is kept whole; of a larger one the beginning is kept, as text. 0 means DefaultMaxBytes, the maximum.
	MaxBytes int `json:"maxBytes,omitempty"`
	// PreviewChars is the size of a preview.
	PreviewChars int `json:"previewChars,omitempty"` // 500
}

func (r Results) maxBytes() int {
	or(&r.MaxBytes, DefaultMaxBytes)
	return r.MaxBytes
}

// Compaction configures when a conversation is shortened, and how: old results become previews, then a model summarizes the old turns. The
// task and the newest turns stay.
type Compaction struct {
	// Threshold is the part of ContextTokens, less the answer, that a conversation may take.
	Threshold float64 `json:"threshold,omitempty"` // 0.85
	// KeepTurns is the number of newest turns that stay unchanged; fewer if these are large themselves.
	KeepTurns int `json:"keepTurns,omitempty"` // 6
	// SummaryMaxTokens is how long a summary may be.
	SummaryMaxTokens int `json:"summaryMaxTokens,omitempty"` // 4,096
	// Model sums up; nil is the model that the agent asks.
	Model *Model `json:"model,omitempty"`
}

// Output describes the answer.
type Output struct {
	Schema map[string]any `json:"schema"`
	// Repairs is how often the model may correct its answer.
	Repairs int `json:"repairs"`
	// PartialAs is the field of the answer that is set to true if a budget was used up before the agent finished; "" if there is no such field.
	PartialAs string `json:"partialAs,omitempty"`
}

// Hooks names the decisions that the driver makes.
type Hooks struct {
	BeforeTool bool `json:"beforeTool,omitempty"`
	AfterTurn  bool `json:"afterTurn,omitempty"`
}

// Sub is an agent that another may call.
type Sub struct {
	Config   Config `json:"config"`
	Parallel bool   `json:"parallel,omitempty"`
	Gate     string `json:"gate,omitempty"`
}

// Tool is a tool of an agent, as listed.
type Tool struct {
	// Name has 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-".
	Name        string         `json:"name"`
	Source      string         `json:"source,omitempty"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
	// Parallel lets calls run beside other calls.
	Parallel bool `json:"parallel,omitempty"`
	ReadOnly bool `json:"readOnly,omitempty"`
	// OnCrash is the treatment of a call that may have been started before a crash: "repeat", "report" (the default) or "ask".
	OnCrash string `json:"onCrash,omitempty"`
	// Gate is "allow" (the default), "ask" or "deny".
	Gate string `json:"gate,omitempty"`
}

// Gate is a rule about calls of tools. The first one that matches counts.
type Gate struct {
	// Tools are patterns of names: "*" stands for any characters.
	Tools []string `json:"tools"`
	// When is a jq program over {tool, arguments, agent, turn}, empty for always. One that fails counts as a match with "ask".
	When string `json:"when,omitempty"`
	// Unless is "" or "read_only".
	Unless string `json:"unless,omitempty"`
	// Do is "allow", "ask" or "deny".
	Do     string `json:"do"`
	Reason string `json:"reason,omitempty"`
	// TimeoutMs is how long a person may take; then the call is denied. 0 means no limit.
	TimeoutMs int `json:"timeoutMs,omitempty"`
}

// MaxTools bounds the tools of an agent.
const MaxTools = 512

// DefaultMaxTokens is how long an answer of a model may be.
const DefaultMaxTokens = 8192

func (c Config) withDefaults() Config {
	or(&c.TurnTimeoutMs, 300_000)
	or(&c.ToolTimeoutMs, 60_000)
	or(&c.MaxConcurrency, 10)
	or(&c.MaxDepth, 5)
	or(&c.Retry.MaxAttempts, 5)
	or(&c.Retry.InitialIntervalMs, 1000)
	or(&c.Retry.Coefficient, 2)
	or(&c.Retry.MaxIntervalMs, 60_000)
	or(&c.Budgets.Turns, 50)
	or(&c.Budgets.ToolCalls, 200)
	or(&c.Budgets.WorkMs, 1_800_000)
	or(&c.Budgets.OnExceeded, "fail")
	or(&c.Budgets.FinishTokens, 1024)
	or(&c.Repeats.Warn, 3)
	or(&c.Repeats.Stop, 5)
	or(&c.Results.MaxChars, 100_000)
	or(&c.Results.PreviewChars, 500)
	or(&c.Compaction.Threshold, 0.85)
	or(&c.Compaction.KeepTurns, 6)
	or(&c.Compaction.SummaryMaxTokens, 4096)
	c.Fallback = c.Fallback.withDefaults()
	models := make([]Model, len(c.Models))
	for i, m := range c.Models {
		models[i] = m.withDefaults()
	}
	c.Models = models
	if m := c.Compaction.Model; m != nil {
		full := m.withDefaults()
		c.Compaction.Model = &full
	}
	subs := make([]Sub, len(c.Agents))
	for i, s := range c.Agents {
		s.Config = s.Config.withDefaults()
		subs[i] = s
	}
	c.Agents = subs
	return c
}

func (m Model) withDefaults() Model {
	or(&m.MaxTokens, DefaultMaxTokens)
	or(&m.MaxTokensCeiling, 4*m.MaxTokens)
	return m
}

func or[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Bounds of a configuration, which holds each sub-agent as often as agents in it call it.
const (
	// MaxNesting bounds sub-agents of sub-agents.
	MaxNesting = 64
	// MaxAgents bounds all agents in a configuration.
	MaxAgents = 256
)

// check validates a configuration with its defaults. at is its place, for errors.
func (c *Config) check(at string, depth int) *Failure {
	bad := func(format string, args ...any) *Failure {
		return &Failure{Code: problem.AgentConfigInvalid, Message: at + ": " + fmt.Sprintf(format, args...), Final: true}
	}
	b := c.Budgets
	switch {
	case depth > MaxNesting:
		return bad("sub-agents are nested more than %d deep", MaxNesting)
	case len(c.Models) == 0:
		return bad("no model; name one in \"models\"")
	case b.Turns < 0 || b.ToolCalls < 0 || b.Tokens < 0 || b.CostMicros < 0 || b.WorkMs < 0 || b.FinishTokens < 0 || c.MaxConcurrency < 0 || c.MaxDepth < 0 || c.Results.MaxChars < 0 ||
		c.Retry.MaxAttempts < 0 || c.Retry.InitialIntervalMs < 0 || c.Retry.MaxIntervalMs < 0 || c.Retry.Coefficient < 1 || c.Repeats.Warn < 0 || c.Repeats.Stop < 0:
		return bad("a number is negative, or modelRetry.coefficient below 1")
	case c.Retries != "" && c.Retries != RetriesAnew:
		return bad("retries is %q; use \"anew\" or nothing", c.Retries)
	case b.OnExceeded != "fail" && b.OnExceeded != "finish":
		return bad("budgets.onExceeded is %q; use \"fail\" or \"finish\"", b.OnExceeded)
	case c.Output != nil && c.Output.Repairs < 0:
		return bad("output.repairs is negative")
	case c.Results.OffloadBytes < 0 || c.Results.PreviewChars < 0:
		return bad("results.offloadBytes or results.previewChars is negative")
	case c.Results.MaxBytes < 0 || c.Results.MaxBytes > DefaultMaxBytes:
		return bad("results.maxBytes is negative or above %d", DefaultMaxBytes)
	case !(c.Compaction.Threshold > 0 && c.Compaction.Threshold <= 1) || c.Compaction.KeepTurns < 0 || c.Compaction.SummaryMaxTokens < 0:
		return bad("compaction.threshold is more than 0 and at most 1, keepTurns and summaryMaxTokens are not negative")
	}
	if why := c.Output.CheckPartial(); why != "" {
		return bad("output.partialAs: %s", why)
	}
	if why := c.Fallback.check(); why != "" {
		return bad("%s", why)
	}
	models := c.Models
	if c.Compaction.Model != nil {
		models = append(slices.Clone(models), *c.Compaction.Model)
	}
	for _, m := range models {
		if m.Model == "" || m.MaxTokens < 0 || m.MaxTokensCeiling < m.MaxTokens || m.ContextTokens < 0 {
			return bad("model %q needs a name, contextTokens of at least 0, and maxTokensCeiling of at least maxTokens", m.Name)
		}
		if b.CostMicros > 0 && m.Price == nil {
			return bad("budgets.costUsd needs priceUsdPerMTok of model %q", m.Name)
		}
		if p := m.Price; p != nil && (p.Input < 0 || p.CachedInput < 0 || p.Output < 0 || p.Input > 1e6 || p.CachedInput > 1e6 || p.Output > 1e6) {
			return bad("a price of model %q is negative or above 1,000,000", m.Name)
		}
	}
	for i, g := range c.Gates {
		if !isDecision(g.Do) || g.Unless != "" && g.Unless != "read_only" || g.TimeoutMs < 0 {
			return bad("gates[%d]: \"do\" is allow, ask or deny, \"unless\" is read_only, \"timeoutMs\" is not negative", i)
		}
	}
	for _, s := range c.Agents {
		if s.Gate != "" && !isDecision(s.Gate) || !nameOfTool(subPrefix+s.Config.Name) {
			return bad("sub-agent %q: its gate is allow, ask or deny, its name has at most 57 letters, digits, \"_\" and \"-\"", s.Config.Name)
		}
		if f := s.Config.check(at+"."+s.Config.Name, depth+1); f != nil {
			return f
		}
	}
	return nil
}

func isDecision(do string) bool { return do == doAllow || do == doAsk || do == doDeny }

// toValue turns a configuration or a tool into plain JSON; fromValue turns it back. Both are for the types of this package only.
func toValue(v any) (any, error) { return jsonvalue.Normalize(v) }

func fromValue(v, into any) error { return jsonvalue.IntoPlain(v, into) }
