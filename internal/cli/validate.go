package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

type validateOptions struct {
	format                        string
	json, strict, canonical, hash bool
	protocol                      bool
	folder                        string
}

func newValidate(a *app) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [FILE...|-]",
		Short: "Validate definitions",
		Long: `Validate workflow definitions. Every problem is listed with its place in the file; a warning is a valid part that is probably a
mistake. A definition that the protocol accepts and that fails here is an error, too; --protocol applies the rules of the protocol
alone. Without a file, or with -, the definition is read from standard input.

Files ending in .yaml or .yml are read as YAML, all others as JSON. The input of a subworkflow is checked, too, if its definition is
in the workflow directory. If agents are configured (--agents), a delegation of protocol sdk to an unknown agent is a warning, and so is
an unknown skill in the metadata of its node.`,
		Example: `  workflows-engine validate order.workflow.json
  workflows-engine validate --strict examples/*/*.workflow.json
  workflows-engine validate --protocol order.workflow.json
  workflows-engine validate --json - < order.workflow.json
  workflows-engine validate --canonical import.workflow.yaml > import.workflow.json
  workflows-engine validate --hash order.workflow.json`,
		RunE: func(_ *cobra.Command, files []string) error { return a.validate(files, o) },
	}
	cmd.Flags().StringVar(&o.format, "format", "", "read the input as this `format`, json or yaml, whatever the extension")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the findings as JSON")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&o.protocol, "protocol", false, "apply the rules of the protocol: reject extensions, accept definitions that other engines run")
	cmd.Flags().BoolVar(&o.canonical, "canonical", false, "print the canonical JSON text of a valid definition")
	cmd.Flags().BoolVar(&o.hash, "hash", false, "print the definition hash of a valid definition")
	config.RegisterWorkflowDir(cmd.Flags(), &o.folder, "the directory of FILE")
	cmd.PreRunE = exclusive("json", "canonical", "hash")
	return cmd
}

// checked is a definition file with the results of its checks.
type checked struct {
	source   source
	document *definition.Document
	program  *definition.Program
	findings problem.Findings
	// unreadable is true if the text is not JSON or YAML, or could not be read; err is then the cause.
	unreadable bool
	err        error
}

// check parses and compiles a definition.
func (s source) check(o lint.Options) checked {
	c := checked{source: s}
	document, err := s.parse()
	if e, ok := problem.As(err); ok && len(e.Findings) > 0 {
		c.findings, c.unreadable = e.Findings, isUnreadable(e.Findings)
		return c
	}
	if err != nil {
		c.unreadable, c.err = true, err
		return c
	}
	c.document = document
	c.program, c.findings = lint.Compile(document, o)
	return c
}

// valid reports whether the definition is accepted; with strict, warnings count as errors.
func (c checked) valid(strict bool) bool {
	return c.program != nil && (!strict || len(c.findings) == 0)
}

// validate checks files one after another. The worst of them decides the exit status.
func (a *app) validate(files []string, o validateOptions) error {
	if len(files) == 0 {
		files = []string{standardInput}
	}
	worst, agents := exitOK, a.agents()
	var results []checked
	for _, file := range files {
		c := a.checkFile(file, o.format, lint.Options{
			Options: definition.Options{Protocol: o.protocol, Runnable: !o.protocol}, Subworkflow: a.subworkflows(file, o.folder), Agents: agents.AgentNames(), Skills: agents.AgentSkills(),
		})
		if err := a.ctx.Err(); err != nil {
			return err
		}
		results = append(results, c)
		if !o.json {
			a.writeChecked(c, o, len(files) > 1)
		}
		switch {
		case c.unreadable:
			worst = max(worst, exitUsage)
		case !c.valid(o.strict):
			worst = max(worst, exitFailed)
		}
	}
	if o.json {
		if err := writeEncoded(a.stdout, encodeChecked(results, o.strict)); err != nil {
			return err
		}
	}
	if worst != exitOK {
		return silent{worst}
	}
	return nil
}

// agents are the settings with the configured agents; without agents if the list is not valid, which other commands report.
func (a *app) agents() *config.Config {
	if c, err := a.flags.LoadAgentList(a.env); err == nil {
		return c
	}
	return &config.Config{}
}

// checkFile is check for a file. The error of an unreadable file is part of the result, so that the other files are still checked.
func (a *app) checkFile(file, format string, o lint.Options) checked {
	s, err := a.readSource(file, format)
	if err != nil {
		return checked{source: s, unreadable: true, err: err}
	}
	return s.check(o)
}

// subworkflows finds definitions that a file refers to, as run does: in the directory that the flag or a setting names, else in the file's own.
func (a *app) subworkflows(file, flag string) func(ref, pin string) *definition.Document {
	folder := a.workflowDir(flag)
	if folder == "" && file != standardInput {
		folder = filepath.Dir(a.path(file))
	}
	if folder == "" {
		return nil
	}
	known := catalog.New(folder, catalog.Options{})
	return func(ref, pin string) *definition.Document {
		document, _ := known.ResolveWorkflow(context.Background(), ref, pin)
		return document
	}
}

// writeChecked prints the findings on stderr, and the result on stdout.
func (a *app) writeChecked(c checked, o validateOptions, several bool) {
	a.printError(c.err)
	writeFindings(a.stderr, a.paint, c)
	if !c.valid(o.strict) {
		return
	}
	switch {
	case o.canonical:
		fmt.Fprintf(a.stdout, "%s\n", c.document.Canonical())
	case o.hash && several:
		fmt.Fprintf(a.human, "%s  %s\n", c.document.Hash(), c.source.name())
	case o.hash:
		fmt.Fprintln(a.stdout, c.document.Hash())
	default:
		fmt.Fprintf(a.human, "OK: %s: %s %s, %s\n", c.source.name(), c.program.Name, c.program.Version,
			count(len(c.program.Nodes), "node"))
	}
}

// writeFindings prints findings as "file:line:col: error CODE message" with the source line, a caret and the hint,
// and a summary line.
func writeFindings(w io.Writer, paint palette, c checked) {
	errorCount, name := 0, plainCell(c.source.name())
	for _, f := range c.findings {
		severity := paint.wait("warning")
		if f.Severity == problem.SeverityError {
			errorCount++
			severity = paint.bad("error")
		}
		place := name
		if f.At.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", place, f.At.Line, f.At.Column)
		}
		fmt.Fprintf(w, "%s: %s %s %s", paint.bold(place), severity, f.Code, f.Message)
		if f.At.Pointer != "" {
			node := ""
			if f.At.NodeID != "" {
				node = problem.Format("node %q, ", f.At.NodeID)
			}
			fmt.Fprintf(w, " %s", paint.faint("("+node+f.At.Pointer+")"))
		}
		fmt.Fprintf(w, "\n%s", excerpt(c.source.text, f.At.Line, f.At.Column))
		if f.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", f.Hint)
		}
	}
	if len(c.findings) > 0 {
		fmt.Fprintf(w, "%s: %s, %s\n", name, count(errorCount, "error"),
			count(len(c.findings)-errorCount, "warning"))
	}
}

// count prints a number with its noun: "1 error", "2 errors".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// isUnreadable reports whether a text is not JSON or YAML, as opposed to one with a duplicate field.
func isUnreadable(findings problem.Findings) bool {
	return slices.ContainsFunc(findings, func(f problem.Finding) bool { return f.Code == problem.DefinitionSyntax })
}

// checkedList is the output of validate --json.
type checkedList struct {
	Valid bool          `json:"valid"`
	Files []checkedFile `json:"files"`
}

type checkedFile struct {
	File    string `json:"file"`
	Valid   bool   `json:"valid"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Hash    string `json:"hash,omitempty"`
	// Error is why the file could not be read.
	Error    string        `json:"error,omitempty"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Severity   string         `json:"severity"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	Hint       string         `json:"hint,omitempty"`
	Line       int            `json:"line,omitempty"`
	Column     int            `json:"column,omitempty"`
	NodeID     string         `json:"node_id,omitempty"`
	Pointer    string         `json:"instance_path"`
	Keyword    string         `json:"keyword,omitempty"`
	SchemaPath string         `json:"schema_path,omitempty"`
	Params     map[string]any `json:"params,omitempty"`
}

func encodeChecked(results []checked, strict bool) checkedList {
	list := checkedList{Valid: true, Files: []checkedFile{}}
	for _, c := range results {
		file := checkedFile{File: c.source.name(), Valid: c.valid(strict), Findings: encodeFindings(c.findings)}
		if c.err != nil {
			file.Error = c.err.Error()
		}
		if c.document != nil {
			file.Name, file.Version = documentHead(c.document)
			file.Hash = c.document.Hash()
		}
		list.Valid = list.Valid && file.Valid
		list.Files = append(list.Files, file)
	}
	return list
}

func encodeFindings(findings problem.Findings) []findingJSON {
	list := make([]findingJSON, len(findings))
	for i, f := range findings {
		list[i] = findingJSON{
			Severity: string(f.Severity), Code: string(f.Code), Message: f.Message, Hint: f.Hint,
			Line: f.At.Line, Column: f.At.Column, NodeID: f.At.NodeID, Pointer: f.At.Pointer,
			Keyword: f.Keyword, SchemaPath: f.SchemaPath, Params: f.Params,
		}
	}
	return list
}
