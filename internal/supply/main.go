// Command supply lists the parts of the engine: the licences of its dependencies, and a software bill of materials of
// a binary.
//
//	go run ./internal/supply licences >THIRD_PARTY_LICENSES.md
//	go run ./internal/supply sbom [-o FILE] [-licences PAGE] [-version VERSION] [-commit COMMIT] bin/workflows-engine
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// page is the list of licences, below the root of the repository.
const page = "THIRD_PARTY_LICENSES.md"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "licences":
		modules, err := required(".")
		if err != nil {
			return err
		}
		text, err := list(modules)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	case len(args) > 0 && args[0] == "sbom":
		return writeBill(args[1:])
	}
	return fmt.Errorf("expected licences, or sbom and a binary")
}

// writeBill writes the bill of a binary. Version and commit are for builds in which the Go tool has not recorded
// them.
func writeBill(args []string) error {
	set := flag.NewFlagSet("sbom", flag.ContinueOnError)
	out := set.String("o", "", "`file` to write instead of standard output")
	licences := set.String("licences", page, "`file` with the licences of dependencies")
	version := set.String("version", "", "version of the binary")
	commit := set.String("commit", "", "commit of the binary")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return fmt.Errorf("expected one binary, found %d", set.NArg())
	}
	info, err := buildinfo.ReadFile(set.Arg(0))
	if err != nil {
		return err
	}
	if *version != "" {
		info.Main.Version = "v" + *version
	}
	if *commit != "" {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: *commit})
	}
	text, err := os.ReadFile(*licences)
	if err != nil {
		return err
	}
	bill, err := describe(strings.TrimSuffix(filepath.Base(set.Arg(0)), ".exe"), info, listed(text))
	if err != nil {
		return err
	}
	if text, err = json.MarshalIndent(bill, "", "  "); err != nil {
		return err
	}
	text = append(text, '\n')
	if *out != "" {
		return os.WriteFile(*out, text, 0o644)
	}
	_, err = os.Stdout.Write(text)
	return err
}
