package temporal

import (
	"regexp"
	"strings"

	common "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	visibility "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

type (
	workflowActivityInfo = activity.Info
	converterValues      = converter.EncodedValues
	valueGetter          = converter.EncodedValue
)

var data = converter.GetDefaultDataConverter()

func decodePayloads(p *common.Payloads, v any) error { return data.FromPayloads(p, v) }

// roundTrip sends an input through the data converter.
func roundTrip(in *runInput) error {
	p, err := data.ToPayload(*in)
	if err != nil {
		return err
	}
	*in = runInput{}
	return data.FromPayload(p, in)
}

func payload(v any) *common.Payload {
	p, err := data.ToPayload(v)
	if err != nil {
		panic(err)
	}
	return p
}

// infoOf returns a run as visibility shows it after the start.
func infoOf(id string, in *runInput, prog *definition.Program) *visibility.WorkflowExecutionInfo {
	info := &visibility.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: id}, Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
		SearchAttributes: &common.SearchAttributes{IndexedFields: map[string]*common.Payload{
			attrPhase.GetName(): payload("running"), attrDefinition.GetName(): payload(prog.Name), attrHash.GetName(): payload(in.Definition),
		}},
		Memo: &common.Memo{Fields: map[string]*common.Payload{}},
	}
	for name, v := range in.memo(prog) {
		info.Memo.Fields[name] = payload(v)
	}
	return info
}

func setPhase(info *visibility.WorkflowExecutionInfo, p history.Phase) {
	info.SearchAttributes.IndexedFields[attrPhase.GetName()] = payload(string(p))
}

var (
	phasesOf = regexp.MustCompile(`AwpPhase IN \(([^)]*)\)`)
	equals   = regexp.MustCompile(`(AwpDefinition|AwpHash) = '([^']*)'`)
)

// selected evaluates the queries that this package makes.
func selected(query string, info *visibility.WorkflowExecutionInfo) bool {
	row := rowOf(data, info)
	if m := phasesOf.FindStringSubmatch(query); m != nil && !strings.Contains(m[1], "'"+string(row.Phase)+"'") {
		return false
	}
	for _, m := range equals.FindAllStringSubmatch(query, -1) {
		if m[1] == "AwpDefinition" && row.DefinitionName != m[2] || m[1] == "AwpHash" && row.DefinitionHash != m[2] {
			return false
		}
	}
	return true
}
