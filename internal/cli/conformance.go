package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/conformance"
)

func newConformance(a *app) *cobra.Command {
	var (
		asJSON bool
		o      conformance.Options
	)
	cmd := &cobra.Command{
		Use:    "conformance DIR",
		Hidden: true, // for those who change the engine: docs/compatibility.md
		Short:  "Run the conformance vectors of the protocol",
		Long: `Run conformance vectors: DIR is a directory with vectors/, a part of it, or one *.vector.json file. Each failed
vector is listed with the expected and the actual value.`,
		Example: `  workflows-engine conformance conformance
  workflows-engine conformance conformance/vectors/cycles
  workflows-engine conformance conformance --json > report.json`,
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.conformance(cmd.Context(), args[0], o, asJSON) },
	}
	cmd.Flags().StringVar(&o.Profile, "vector-profile", "", "run only vectors of this `profile`, and those without one")
	cmd.Flags().BoolVar(&o.AllowPending, "allow-pending", false, "accept parity vectors that are marked as pending")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// conformance runs the vectors of a directory.
func (a *app) conformance(ctx context.Context, dir string, o conformance.Options, asJSON bool) error {
	report, err := conformance.RunDir(ctx, a.path(dir), o)
	if err != nil {
		return usage("cannot read the vectors").WithCause(err)
	}
	if asJSON {
		err = writeEncoded(a.stdout, report)
	} else {
		err = writeReport(a.human, report)
	}
	if err == nil && report.Status != conformance.Pass {
		err = silent{exitFailed}
	}
	return err
}

// writeReport prints the vectors that failed, and a summary.
func writeReport(w io.Writer, report conformance.Report) error {
	for _, p := range report.Problems {
		fmt.Fprintf(w, "FAIL %s\n", p.Message)
	}
	for _, v := range report.Vectors {
		if v.Status == conformance.Pass {
			continue
		}
		fmt.Fprintf(w, "FAIL %s (%s)\n", v.Path, v.Kind)
		for _, p := range v.Problems {
			at := ""
			if p.At != "" {
				at = p.At + ": "
			}
			fmt.Fprintf(w, "  %s%s\n", at, p.Message)
			if p.Expected != nil || p.Got != nil {
				fmt.Fprintf(w, "    expected %s\n    got      %s\n", short(p.Expected, 200), short(p.Got, 200))
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s: %d of %d vectors pass\n", report.Status, report.Passed, report.Total)
	return err
}
