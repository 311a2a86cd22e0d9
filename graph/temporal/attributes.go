package temporal

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// The search attributes of runs. A namespace needs them before the first run; see SearchAttributes.
var (
	attrPhase      = sdk.NewSearchAttributeKeyKeyword("AwpPhase")
	attrDefinition = sdk.NewSearchAttributeKeyKeyword("AwpDefinition")
	attrHash       = sdk.NewSearchAttributeKeyKeyword("AwpHash")
	attrParent     = sdk.NewSearchAttributeKeyKeyword("AwpParent")
	attrLabels     = sdk.NewSearchAttributeKeyKeywordList("AwpLabels")
)

// SearchAttributes returns the names and types of the search attributes that a namespace needs.
func SearchAttributes() map[string]enums.IndexedValueType {
	return map[string]enums.IndexedValueType{
		attrPhase.GetName(): attrPhase.GetValueType(), attrDefinition.GetName(): attrDefinition.GetValueType(), attrHash.GetName(): attrHash.GetValueType(),
		attrParent.GetName(): attrParent.GetValueType(), attrLabels.GetName(): attrLabels.GetValueType(),
	}
}

// attributes returns the search attributes of a run at its start.
func (in *runInput) attributes(name string) sdk.SearchAttributes {
	phase := history.PhaseRunning
	if c := in.Continued; c != nil {
		if exec, err := history.ParseExecution(in.Config.ExecutionID, c.Projection); err == nil { // else the workflow reports it
			phase = exec.Phase
		}
	}
	updates := []sdk.SearchAttributeUpdate{
		attrPhase.ValueSet(string(phase)), attrDefinition.ValueSet(name), attrHash.ValueSet(in.Definition),
	}
	if in.Config.Parent != "" {
		updates = append(updates, attrParent.ValueSet(in.Config.Parent))
	}
	if len(in.Labels) > 0 {
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(in.Labels)) {
			labels = append(labels, k+"="+in.Labels[k])
		}
		updates = append(updates, attrLabels.ValueSet(labels))
	}
	return sdk.NewSearchAttributes(updates...)
}

// The members of a run's memo.
const (
	memoTitle   = "title"
	memoLabels  = "labels"
	memoVersion = "version"
	memoImport  = "imported"
)

// memo returns the parts of a run that lists show besides its search attributes.
func (in *runInput) memo(prog *definition.Program) map[string]any {
	m := map[string]any{}
	if in.Title != "" {
		m[memoTitle] = in.Title
	}
	if len(in.Labels) > 0 {
		m[memoLabels] = in.Labels
	}
	if prog.Version != "" {
		m[memoVersion] = prog.Version
	}
	if in.Continued != nil && in.Continued.Imported != "" {
		m[memoImport] = in.Continued.Imported
	}
	return m
}

// maxFairnessKey is the longest fairness key, in bytes.
const maxFairnessKey = 64

// priority returns the priority and the fairness key of a run.
func (in *runInput) priority(fairLabel string) sdk.Priority {
	p := sdk.Priority{PriorityKey: 3, FairnessKey: in.Labels[fairLabel]}
	switch n := in.Config.Priority; {
	case n <= -10:
		p.PriorityKey = 5
	case n < 0:
		p.PriorityKey = 4
	case n >= 10:
		p.PriorityKey = 1
	case n > 0:
		p.PriorityKey = 2
	}
	if p.FairnessKey == "" {
		p.FairnessKey, _, _ = strings.Cut(in.Config.ExecutionID, history.ChildMark)
	}
	if len(p.FairnessKey) > maxFairnessKey {
		sum := sha256.Sum256([]byte(p.FairnessKey))
		p.FairnessKey = hex.EncodeToString(sum[:16])
	}
	return p
}
