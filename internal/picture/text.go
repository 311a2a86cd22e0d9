// Package picture draws definitions, and runs of them.
package picture

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// maxLines is how many nodes a picture has, maxLine how many characters a line of it has about.
const (
	maxLines = 200
	maxLine  = 160
)

// Text draws a definition as lines, one a node, in the order of a run:
//
//	begin (start) → classify
//	route (switch): .intent == "refund" → approve; else → finish
//	finish (end)
//
// Nodes that no path reaches come last.
//
// Of a run, each line ends with the outcome of its node. run is nil for a definition alone.
func Text(p *definition.Program, run *timeline.Run) string {
	passed := passagesOf(run)
	order := []*definition.Node{p.Entry}
	seen := map[*definition.Node]bool{p.Entry: true}
	for n := range p.After([]*definition.Node{p.Entry}) {
		if !seen[n] {
			order, seen[n] = append(order, n), true
		}
	}
	lines := make([]string, 0, len(p.Nodes))
	line := func(n *definition.Node) string {
		text := clean(line(n))
		if facts := passed.facts(n.ID); facts != "" {
			text += "   [" + facts + "]"
		}
		return text
	}
	for _, n := range order {
		lines = append(lines, line(n))
	}
	for _, n := range p.Nodes {
		if !seen[n] {
			lines = append(lines, line(n)+"   (no path leads here)")
		}
	}
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines], fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(lines, "\n") + "\n"
}

func line(n *definition.Node) string {
	text := fmt.Sprintf("%s (%s)", n.ID, about(n))
	switch {
	case n.Switch != nil:
		var ways []string
		otherwise := "else → "
		if l := n.Loop; l != nil {
			otherwise = "then → "
			ways = append(ways, "each round → "+l.Body.ID)
			if l.OnLimit != nil {
				ways = append(ways, limitOf(l)+" → "+l.OnLimit.ID)
			}
		}
		for _, c := range n.Switch.Cases {
			ways = append(ways, fmt.Sprintf("%s → %s", c.When.Source(), c.Target))
		}
		if n.Switch.Default != "" {
			ways = append(ways, otherwise+n.Switch.Default)
		}
		return cut(text+": "+strings.Join(ways, "; "), 3*maxLine)
	case n.Parallel != nil:
		var branches []string
		for _, b := range n.Parallel.Branches {
			branches = append(branches, fmt.Sprintf("%s → %s", b.Name, b.Entry.ID))
		}
		text = cut(text+": "+strings.Join(branches, "; "), 3*maxLine)
		if n.Next != nil {
			text += "; joined → " + n.Next.ID
		}
	case n.Next != nil:
		text += " → " + n.Next.ID
	}
	for _, k := range n.Catches {
		text += fmt.Sprintf("; on %s → %s", cut(strings.Join(k.Codes, ", "), maxLine), k.Target.ID)
		if k.Rollback {
			text += " after a rollback"
		}
	}
	if n.Compensation != nil {
		text += "; undone by " + n.Compensation.Node.ID
	}
	return text
}

// about describes a node in a few words: its type and its main setting.
func about(n *definition.Node) string {
	detail := ""
	switch {
	case n.Parallel != nil:
		detail = string(n.Parallel.Join)
	case n.Wait != nil:
		detail = string(n.Wait.Kind)
		if n.Wait.Signal != "" {
			detail += " " + n.Wait.Signal
		}
	case n.Subworkflow != nil:
		detail = n.Subworkflow.WorkflowRef
	case n.Delegate != nil:
		detail = n.Delegate.AgentID
	case n.Loop != nil:
		detail = fmt.Sprintf("loop, %d rounds at most, ", n.Loop.Max)
		if n.Loop.While != nil {
			detail += "while " + n.Loop.While.Source()
		} else {
			detail += "until " + n.Loop.Until.Source()
		}
	case n.Map != nil:
		detail = "for each of " + n.Map.Items.Source()
	case n.SetState != nil:
		var names []string
		for _, a := range n.SetState.Assignments {
			names = append(names, a.Key)
		}
		detail = strings.Join(names, ", ")
	}
	if detail == "" {
		return string(n.Type)
	}
	return cut(string(n.Type)+" "+detail, maxLine)
}

// limitOf describes the limit of a loop.
func limitOf(l *definition.Loop) string { return fmt.Sprintf("after %d rounds", l.Max) }

func cut(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
