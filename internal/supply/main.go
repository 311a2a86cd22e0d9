// Command supply writes what the engine is made of: the licences of its dependencies, and a software bill of materials of a binary.
//
//	go run ./internal/supply licences >THIRD_PARTY_LICENSES.md
//	go run ./internal/supply sbom bin/workflows-engine >bin/workflows-engine.cdx.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	case len(args) == 2 && args[0] == "sbom":
		info, err := buildinfo.ReadFile(args[1])
		if err != nil {
			return err
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		bill, err := describe(filepath.Base(args[1]), info, listed(text))
		if err != nil {
			return err
		}
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(bill)
	}
	return fmt.Errorf("expected licences, or sbom and a binary")
}
