// Package envname holds the names of the environment variables, for readers and for hints.
package envname

import "github.com/workflows-engine/workflows-engine/graph/problem"

// Prefix begins the name of every variable of this program.
const Prefix = "WORKFLOW_ENGINE_"

// The variables. Some are the protocol's (spec: cli-and-config, 4), the others are additions.
const (
	Store            = Prefix + "STORE"
	StorePath        = Prefix + "STORE_PATH"
	StoreURL         = Prefix + "STORE_URL"
	StoreURLFile     = Prefix + "STORE_URL_FILE"
	StoreSchema      = Prefix + "STORE_SCHEMA"
	StoreConns       = Prefix + "STORE_CONNS"
	StoreMigrate     = Prefix + "STORE_MIGRATE"
	StoreNotify      = Prefix + "STORE_NOTIFY"
	Profile          = Prefix + "PROFILE"
	StepHandlers     = Prefix + "STEP_HANDLERS"
	StepCommands     = Prefix + "STEP_COMMANDS"
	LLM              = Prefix + "LLM_CONFIG"
	MCPConfig        = Prefix + "MCP_CONFIG"
	MCPAllowCommands = Prefix + "MCP_ALLOW_COMMANDS"
	A2A              = Prefix + "A2A_CONFIG"
	Agents           = Prefix + "AGENTS"
	Webhooks         = Prefix + "WEBHOOKS"
	SigningMode      = Prefix + "DEFINITION_SIGNING_MODE"
	SigningKeys      = Prefix + "SIGNING_PUBLIC_KEYS"
	WorkflowDir      = Prefix + "WORKFLOW_DIR"
	WorkflowSources  = Prefix + "WORKFLOW_SOURCES"
	Synchronous      = Prefix + "SYNCHRONOUS"
	WaitLimit        = Prefix + "WAIT_LIMIT"
	MinHostTimeout   = Prefix + "MIN_HOST_TIMEOUT"
	Drain            = Prefix + "DRAIN"
	Elicit           = Prefix + "ELICIT"
	LogLevel         = Prefix + "LOG_LEVEL"
	LogFormat        = Prefix + "LOG_FORMAT"
	MaxVisits        = Prefix + "MAX_VISITS"
	MaxRecords       = Prefix + "MAX_RECORDS"
	MaxBytes         = Prefix + "MAX_BYTES"
	MaxPending       = Prefix + "MAX_PENDING"
	MaxDepth         = Prefix + "MAX_DEPTH"
	MaxTreeRuns      = Prefix + "MAX_TREE_RUNS"
	MaxTreeVisits    = Prefix + "MAX_TREE_VISITS"
	MaxTreeRecords   = Prefix + "MAX_TREE_RECORDS"
	MaxTreeBytes     = Prefix + "MAX_TREE_BYTES"
	MaxTreePending   = Prefix + "MAX_TREE_PENDING"
	DefaultRetry     = Prefix + "DEFAULT_RETRY"
	Limits           = Prefix + "LIMITS"
	Capacity         = Prefix + "CAPACITY"
	MaxQueued        = Prefix + "MAX_QUEUED"
	Queues           = Prefix + "QUEUES"
	FairLabel        = Prefix + "FAIR_LABEL"
	Redact           = Prefix + "REDACT"
	RecordRequests   = Prefix + "RECORD_REQUESTS"
	MaxMemory        = Prefix + "MAX_MEMORY"
	HTTPToken        = Prefix + "HTTP_TOKEN"
)

// Options maps the Go names in hints of the library to flags.
var Options = problem.Glossary{
	"Options.MaxVisits": "--max-visits", "Options.MaxRecords": "--max-records", "Options.MaxBytes": "--max-bytes",
	"TreeLimits.Runs": "--max-tree-runs", "TreeLimits.Visits": "--max-tree-visits", "TreeLimits.Records": "--max-tree-records",
	"TreeLimits.Bytes": "--max-tree-bytes", "TreeLimits.Pending": "--max-tree-pending",
	"Options.MaxPending": "--max-pending", "Options.MaxQueued": "--max-queued",
	"Options.NoBackup": "workflows-engine db migrate --no-backup", "Options.Workflows": "--workflow-dir", "Options.Webhooks": "--webhooks", "Options.Activities": "a setting for it", "Options.Delegates": "a setting for it",
}

// Unsupported lists the variables of the protocol that have no effect in this engine.
var Unsupported = []string{Prefix + "AUTH_TOKENS", Prefix + "REST_PORT"}

// OfExecutor names the setting that configures the executor of a node type or a delegate protocol; "" for
// other kinds. Protocol sdk can be served by a Go program, too.
func OfExecutor(kind string) string {
	switch kind {
	case "step":
		return StepCommands + " or " + StepHandlers
	case "llm_call":
		return LLM
	case "tool_call", "mcp":
		return MCPConfig
	case "a2a":
		return A2A
	case "sdk":
		return Agents + " or --agents"
	}
	return ""
}
