package archtest_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fenced is a block of a page between fences.
type fenced struct {
	page string // its path from the root, with slashes
	line int
	tag  string // what stands behind the first fence: a language, and a word or two for the test
	text string
}

// blocks returns the fenced blocks of the pages.
func blocks(t *testing.T) []fenced {
	t.Helper()
	fence := regexp.MustCompile("^ *(```+|~~~+)(.*)$")
	var list []fenced
	for file, text := range pages(t) {
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		var open *fenced
		for i, line := range strings.Split(text, "\n") {
			switch m := fence.FindStringSubmatch(line); {
			case m == nil && open != nil:
				open.text += line + "\n"
			case m != nil && open == nil:
				open = &fenced{page: filepath.ToSlash(page), line: i + 1, tag: strings.TrimSpace(m[2])}
			case m != nil:
				list = append(list, *open)
				open = nil
			}
		}
		if open != nil {
			t.Errorf("%s:%d: the block does not end", open.page, open.line)
		}
	}
	return list
}

// claims say which test runs the blocks of a page: by a pattern for the page and the tag, the file of the test and its name. The first
// that fits counts. A test that is named here goes through all such blocks, or fails.
var claims = []struct{ page, tag, file, test string }{
	{"docs/tutorial.md", "*", "internal/cli/tutorial_test.go", "TestTutorial"},
	{"docs/reference/language.md", "yaml fragment", "examples/pages_test.go", "TestFragmentsArePartsOfDefinitions"},
	{"docs/workflows.md", "mermaid", "examples/pages_test.go", "TestThePictureOfTheFirstDefinition"},
	{"README.md", "yaml", "examples/pages_test.go", "TestTheReadmeShowsTheExample"},
	{"docs/workflows.md", "json", "examples/pages_test.go", "TestPagesRun"},
	{"docs/recipes.md", "yaml", "examples/pages_test.go", "TestPagesRun"},
	{"docs/executors.md", "yaml fragment", "examples/pages_test.go", "TestNodesOfThePages"},
	{"docs/agents.md", "yaml fragment", "examples/pages_test.go", "TestNodesOfThePages"},
	{"docs/testing-workflows.md", "yaml", "examples/pages_test.go", "TestTheTestOfThePage"},
	{"docs/reference/codes.md", "yaml *", "internal/authoring/codes_test.go", "TestExamplesAreTrue"},
	{"docs/embedding.md", "go", "internal/archtest/docs_test.go", "TestTheEmbeddersPageShowsTheExample"},
	{"*", "go", "internal/archtest/blocks_test.go", "TestGoOfThePagesIsCompiled"},
	{"docs/concepts.md", "mermaid", "internal/calls/concepts_test.go", "TestThePictureOfARun"},
	{"docs/architecture.md", "mermaid", "internal/archtest/docs_test.go", "TestNamedPathsExist"},
	{"docs/scaling.md", "mermaid", "internal/cli/fleet_test.go", "TestThePictureOfTheFleet"},
	{"examples/*/README.md", "sh", "internal/cli/pageruns_test.go", "TestCommandsOfTheExamples"},
	{"examples/lighthouse/README.md", "json", "internal/cli/pageruns_test.go", "TestCommandsOfTheExamples"},
	{"*", "sh", "internal/cli/pages_test.go", "TestCommandsOfThePages"},
	{"docs/agents.md", "json", "internal/agentfile/agentfile_test.go", "TestTheFileOfThePage"},
	{"docs/webhooks.md", "json", "internal/webhook/receiver_test.go", "TestTheFileOfThePage"},
	{"docs/http-api.md", "sh walk", "internal/httpapi/httpapi_test.go", "TestTheWalkOfThePage"},
	{"docs/http-api.md", "json", "internal/httpguard/token_test.go", "TestTheFileOfThePage"},
	{"docs/executors.md", "json", "internal/cli/pages_test.go", "TestSettingsOfThePages"},
	{"docs/executors.md", "python", "internal/cli/pageruns_test.go", "TestThePythonStep"},
	{"docs/executors.md", "text", "internal/cli/records_test.go", "TestThePageShowsARepair"},
	{"docs/reference/cli.md", "text", "internal/cli/reference_test.go", "TestReferencePage"},
	{"docs/reference/mcp-server.md", "text", "cmd/workflows-engine-mcp/reference_test.go", "TestReferencePage"},
	{"docs/install.md", "json entry", "internal/cli/pageruns_test.go", "TestEntriesOfHosts"},
	{"docs/reference/mcp-tools.md", "json", "internal/mcpserver/fit_test.go", "TestThePageShowsAReference"},
	{"docs/tested-hosts.md", "text *", "internal/hostcheck/page_test.go", "TestThePageShowsTranscripts"},
	{"docs/mcp-hosts.md", "text", "cmd/workflows-engine-mcp/pages_test.go", "TestProxiesOfThePage"},
	{"docs/deploy.md", "ini", "internal/cli/pages_test.go", "TestTheUnitOfThePage"},
	{"docs/database.md", "sql", "history/historypg/diagnose_test.go", "TestRightsToRun"},
	{"docs/observe.md", "text", "internal/timeline/page_test.go", "TestThePageShowsATree"},
	{"docs/testing-workflows.md", "text", "internal/cli/pageruns_test.go", "TestThePageShowsAFailedTest"},
	{"examples/README.md", "text", "examples/lighthouse/live/main_test.go", "TestThePageShowsAHistory"},
}

// matches is path.Match, but * alone also stands for slashes.
func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return pattern == "*" || ok && err == nil
}

// TestEveryBlockIsRun: each block of the pages is run, or at least read, by a test.
func TestEveryBlockIsRun(t *testing.T) {
	t.Parallel()
	used := map[int]bool{}
	for _, b := range blocks(t) {
		at := slices.IndexFunc(claims, func(c struct{ page, tag, file, test string }) bool {
			return matches(c.page, b.page) && matches(c.tag, b.tag)
		})
		if at < 0 {
			t.Errorf("%s:%d: no test runs a block of %q", b.page, b.line, b.tag)
		}
		used[at] = true
	}
	for i, c := range claims {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
		if err != nil || !strings.Contains(string(src), "\nfunc "+c.test+"(t *testing.T)") {
			t.Errorf("there is no %s in %s (%v)", c.test, c.file, err)
		}
		if !used[i] {
			t.Errorf("no block of %s is %q", c.page, c.tag)
		}
	}
}

// TestGoOfThePagesIsCompiled: the Go code of the pages stands in the tests of a package, which compile and run it.
func TestGoOfThePagesIsCompiled(t *testing.T) {
	t.Parallel()
	plain := func(text string) string {
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return "\n" + strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
	}
	sources := map[string]string{}
	for _, pattern := range []string{"graph/*_test.go", "graph/graphtest/*_test.go", "conformance/*_test.go", "delegate/agent/*_test.go", "internal/webhook/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = plain(string(src))
		}
	}
	for _, b := range blocks(t) {
		if b.tag != "go" || b.page == "docs/embedding.md" {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(sources)), func(src string) bool { return strings.Contains(src, plain(b.text)) }) {
			t.Errorf("%s:%d: no test of graph, graph/graphtest, conformance, delegate/agent or internal/webhook has these lines:\n%s", b.page, b.line, b.text)
		}
	}
}
