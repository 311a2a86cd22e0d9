package cli

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// runJSON is where a run stands, with the member names of the protocol's tool results (spec: mcp-tools, 4).
type runJSON struct {
	ExecutionID       string         `json:"execution_id"`
	Status            string         `json:"status"`
	DefinitionName    string         `json:"definition_name"`
	DefinitionVersion string         `json:"definition_version"`
	DefinitionHash    string         `json:"definition_hash"`
	Mode              string         `json:"activity_execution_mode"`
	NodeID            string         `json:"node_id,omitempty"`
	State             map[string]any `json:"state,omitempty"`
	FinalState        map[string]any `json:"final_state,omitempty"`
	// Result may be JSON null, so its absence needs a pointer.
	Result            *any          `json:"result,omitempty"`
	Error             string        `json:"error,omitempty"`
	Code              string        `json:"code,omitempty"`
	Reason            string        `json:"reason,omitempty"`
	Pending           []pendingJSON `json:"pending,omitempty"`
	ParentExecutionID string        `json:"parent_execution_id,omitempty"`
	ChildExecutionID  string        `json:"child_execution_id,omitempty"`
	NodeVisits        int           `json:"node_visits"`
	Lacks             *lackJSON     `json:"lacks,omitempty"`
	Warnings          []warningJSON `json:"warnings,omitempty"`
	CreatedAt         time.Time     `json:"created_at"`
	UpdatedAt         time.Time     `json:"updated_at"`
	// Seq is the number of the run's last record.
	Seq int64 `json:"seq"`
	// ForkedFrom is set for a run that was forked.
	ForkedFrom *forkedJSON `json:"forked_from,omitempty"`
}

type forkedJSON struct {
	ExecutionID string `json:"execution_id"`
	Seq         int64  `json:"seq"`
}

// warningJSON is a limit that the run nears.
type warningJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Used    int64  `json:"used"`
	Limit   int64  `json:"limit"`
	Hint    string `json:"hint"`
}

// lackJSON is what this command lacks to go on with a run: what the run waits for now (awaited), or what may follow once
// it is answered.
type lackJSON struct {
	ExecutionID string `json:"execution_id"`
	NodeID      string `json:"node_id"`
	Missing     string `json:"missing"`
	Setting     string `json:"setting,omitempty"`
	Awaited     bool   `json:"awaited"`
}

type pendingJSON struct {
	Kind             string         `json:"kind"`
	ID               string         `json:"id"`
	ExecutionID      string         `json:"execution_id"`
	NodeID           string         `json:"node_id"`
	NodeType         string         `json:"node_type"`
	Host             bool           `json:"host"`
	Attempt          int            `json:"attempt,omitempty"`
	Branch           string         `json:"branch,omitempty"`
	Config           map[string]any `json:"config,omitempty"`
	OutputSchema     any            `json:"output_schema,omitempty"`
	IdempotencyKey   string         `json:"idempotency_key,omitempty"`
	Deadline         *time.Time     `json:"deadline,omitempty"`
	BlockDeadline    *time.Time     `json:"block_deadline,omitempty"`
	LastError        string         `json:"last_error,omitempty"`
	Prompt           string         `json:"prompt,omitempty"`
	PromptRef        string         `json:"prompt_ref,omitempty"`
	ResumeSchema     map[string]any `json:"resume_schema,omitempty"`
	SignalName       string         `json:"signal_name,omitempty"`
	Due              *time.Time     `json:"due,omitempty"`
	AgentID          string         `json:"agent_id,omitempty"`
	Protocol         string         `json:"protocol,omitempty"`
	CorrelationID    string         `json:"delegate_correlation_id,omitempty"`
	DelegateInput    map[string]any `json:"delegate_input,omitempty"`
	ExternalTaskID   string         `json:"external_task_id,omitempty"`
	ChildExecutionID string         `json:"child_execution_id,omitempty"`
	WorkflowRef      string         `json:"workflow_ref,omitempty"`
}

func encodeRun(run *graph.Run) runJSON {
	j := runJSON{
		ExecutionID: run.ExecutionID, Status: string(run.Status), DefinitionName: run.DefinitionName,
		DefinitionVersion: run.DefinitionVersion, DefinitionHash: run.DefinitionHash, Mode: string(run.Mode),
		NodeID: run.CurrentNodeID, State: run.State, FinalState: run.FinalState, Error: run.Error,
		Code: run.ErrorCode, Reason: run.Reason, ParentExecutionID: run.Parent,
		ChildExecutionID: run.ChildExecutionID, NodeVisits: run.NodeVisits,
		CreatedAt: run.CreatedAt, UpdatedAt: run.UpdatedAt, Seq: run.Seq,
	}
	if f := run.ForkedFrom; f.ExecutionID != "" {
		j.ForkedFrom = &forkedJSON{f.ExecutionID, f.Seq}
	}
	if run.Lacks != nil {
		j.Lacks = encodeLack(run.Lacks)
	}
	if run.Status == machine.Completed {
		j.Result = &run.Result
		j.NodeID = ""
	}
	if run.ErrorNodeID != "" {
		j.NodeID = run.ErrorNodeID
	}
	for _, w := range run.Warnings {
		j.Warnings = append(j.Warnings, warningJSON{string(w.Code), w.Message, w.Used, w.Limit, w.Hint})
	}
	for _, p := range run.Pending {
		j.Pending = append(j.Pending, encodePending(p))
	}
	return j
}

func encodeLack(l *graph.Lack) *lackJSON {
	return &lackJSON{l.ExecutionID, l.NodeID, l.Missing, l.Setting, !l.Host}
}

func encodePending(p graph.Pending) pendingJSON {
	j := pendingJSON{
		Kind: string(p.Kind), ID: p.ID, ExecutionID: p.ExecutionID, NodeID: p.NodeID, NodeType: p.NodeType,
		Host: p.Host, Attempt: p.Attempt, Config: p.Config, OutputSchema: p.OutputSchema,
		IdempotencyKey: p.IdempotencyKey, Deadline: optionalTime(p.Deadline), BlockDeadline: optionalTime(p.BlockDeadline), LastError: p.LastError,
		Prompt: p.Prompt, PromptRef: p.PromptRef, ResumeSchema: p.ResumeSchema, SignalName: p.SignalName,
		Due: optionalTime(p.Due), AgentID: p.AgentID, Protocol: p.Protocol, CorrelationID: p.CorrelationID,
		DelegateInput: p.DelegateInput, ExternalTaskID: p.ExternalTaskID, ChildExecutionID: p.ChildExecutionID, WorkflowRef: p.WorkflowRef,
	}
	if p.Span != nil {
		j.Branch = p.Span.BranchName
	}
	return j
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// executionJSON is one run of a list.
type executionJSON struct {
	ExecutionID       string    `json:"execution_id"`
	Phase             string    `json:"phase"`
	DefinitionName    string    `json:"definition_name,omitempty"`
	DefinitionVersion string    `json:"definition_version,omitempty"`
	CurrentNodeID     string    `json:"current_node_id,omitempty"`
	LastError         string    `json:"last_error,omitempty"`
	SignalName        string    `json:"signal_name,omitempty"`
	ParentExecutionID string    `json:"parent_execution_id,omitempty"`
	CreatedAt         time.Time `json:"created_at"`
	UpdatedAt         time.Time `json:"updated_at"`
}

func encodeExecution(e history.Execution) executionJSON {
	return executionJSON{
		ExecutionID: e.ID, Phase: string(e.Phase), DefinitionName: e.DefinitionName,
		DefinitionVersion: e.DefinitionVersion, CurrentNodeID: e.CurrentNodeID, LastError: e.LastError,
		SignalName: e.SignalName, ParentExecutionID: e.Parent, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}
