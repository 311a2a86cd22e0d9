package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the documents for readers, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "examples/*.md", "examples/*/*.md", "history/historysql/*.md", "internal/release/npm/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	if len(texts) < 15 {
		t.Fatalf("only %d pages", len(texts))
	}
	return texts
}

// TestNamedPathsExist: the paths in docs/architecture.md and in its pictures exist.
func TestNamedPathsExist(t *testing.T) {
	t.Parallel()
	page, found := pages(t)[filepath.Join(root, "docs/architecture.md")], 0
	for _, m := range regexp.MustCompile(`\b((?:cmd|conformance|delegate|examples|graph|history|internal|schemas|docs|activities)/[\w/.*-]*\w)`).FindAllStringSubmatch(page, -1) {
		if paths, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(paths) == 0 {
			t.Errorf("docs/architecture.md names %s, which does not exist", m[1])
		}
		found++
	}
	if found < 30 {
		t.Fatalf("only %d paths", found)
	}
}

// TestNamedTestsExist: each test and benchmark that docs/reference/tests.md has run is one of a package that its command names.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, command := range regexp.MustCompile("`((?:\\./[\\w/-]+ )+(?:-v )?-(?:run|bench).*?)`").FindAllStringSubmatch(pages(t)[filepath.Join(root, "docs/reference/tests.md")], -1) {
		var tests string
		for _, folder := range regexp.MustCompile(`\./[\w/-]+`).FindAllString(command[1], -1) {
			paths, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				tests += string(text)
			}
		}
		pattern := regexp.MustCompile(`-(run|bench) '?([^' ]+)`).FindAllStringSubmatch(command[1], -1)
		for _, p := range pattern {
			prefix, kind := "", "(?:Test|Fuzz)"
			names := strings.ReplaceAll(p[2], `\|`, "|")
			if p[1] == "bench" {
				kind = "Benchmark"
			}
			if before, rest, ok := strings.Cut(names, "("); ok && !strings.Contains(before, "|") {
				prefix, names = before, strings.TrimSuffix(rest, ")")
			}
			for _, name := range strings.Split(names, "|") {
				name, _, _ = strings.Cut(prefix+name, "/")
				if name == "^$" {
					continue
				}
				if p[1] == "bench" {
					name = kind + name
				}
				if found++; !strings.Contains(tests, "\nfunc "+name) {
					t.Errorf("docs/reference/tests.md: no test of %s begins with %s", command[1], name)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d tests are named", found)
	}
}

// TestTheEmbeddersPageShowsTheExample: the program in docs/embedding.md is the first example of package graph.
func TestTheEmbeddersPageShowsTheExample(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join(root, "graph/example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?s)\nfunc Example\(\) (\{\n.*?\n\}\n)`).FindStringSubmatch(string(src))
	if example == nil || !strings.Contains(pages(t)[filepath.Join(root, "docs/embedding.md")], "\nfunc main() "+example[1]) {
		t.Error("docs/embedding.md does not show the body of Example in graph/example_test.go")
	}
}

// settings returns the variables that have an effect, without their prefix.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(root, "internal/config/envname/envname.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`\w+ += Prefix \+ "(\w+)"`).FindAllStringSubmatch(string(src), -1) {
		names[m[1]] = true
	}
	if len(names) < 20 {
		t.Fatalf("only %d variables", len(names))
	}
	return names
}

// TestEverySettingIsDescribed: docs/reference/settings.md names every variable that has an effect, and the pages name no others.
func TestEverySettingIsDescribed(t *testing.T) {
	t.Parallel()
	known := settings(t)
	page := pages(t)[filepath.Join(root, "docs/reference/settings.md")]
	for name := range known {
		if !strings.Contains(page, "`WORKFLOW_ENGINE_"+name+"`") {
			t.Errorf("docs/reference/settings.md does not name %s", name)
		}
	}
	for path, text := range pages(t) {
		for _, m := range regexp.MustCompile(`WORKFLOW_ENGINE_([A-Z0-9_]+)`).FindAllStringSubmatch(text, -1) {
			if !known[m[1]] && !strings.HasPrefix(m[1], "TEST_") { // those of tests are no settings
				t.Errorf("%s: unknown variable %s", path, m[0])
			}
		}
	}
}

// declaredCodes returns the codes that package problem declares, and those of results that models read.
func declaredCodes(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for file, pattern := range map[string]string{
		"graph/problem/codes.go": `Code = "(\w+)"`, "delegate/agentloop/tools.go": `(?m)^\t\w+ += "([A-Z_]+)"$`,
	} {
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(src), -1) {
			known[m[1]] = true
		}
	}
	return known
}

// TestCodesOfThePagesExist: what looks like an error code in a page is one.
func TestCodesOfThePagesExist(t *testing.T) {
	t.Parallel()
	known, variables := declaredCodes(t), settings(t)
	for path, text := range pages(t) {
		for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`").FindAllStringSubmatch(text, -1) {
			setting := regexp.MustCompile(`^(WORKFLOWS?_ENGINE|SOAK|OPENAI|TEMPORAL)_`).MatchString(m[1]) || variables[m[1]]
			if !known[m[1]] && !setting {
				t.Errorf("%s: unknown error code %s", path, m[1])
			}
		}
	}
}

// TestLinksHaveTargets: the files and headings that links between pages name exist.
func TestLinksHaveTargets(t *testing.T) {
	t.Parallel()
	all := pages(t)
	fences := regexp.MustCompile("(?s)```.*?```")
	for path, text := range all {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: no file for link %s", path, m[1])
				continue
			}
			if heading != "" && !anchors(fences.ReplaceAllString(all[target], ""))[heading] {
				t.Errorf("%s: no heading for link %s", path, m[1])
			}
		}
	}
}

// anchors returns the names that a page's headings have in links.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}

// TestPagesUseNoWornConstructions: constructions that make a reader decode a sentence do not return to the pages. Blocks are quotes of programs.
func TestPagesUseNoWornConstructions(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)\n ?```.*?\n ?```|`[^`\n]*`")
	worn := regexp.MustCompile(`\b(of|for|in|on|to|with|from|at|by|under|beside) (which|whom)\b|\b([Ww]hoever|[Ww]ho (may|wants)) |\b(stands?|stood)\b|\b(go|goes|going|went) on\b|` +
		`\b([Ss]ome|[Nn]o|[Aa]ny|[Ee]very)body\b|\b(say|tell)s? (what|which|whether|how|where)\b|\bas that\b|\bthe ones? (that|of)\b|all the same|of its own|as a rule|otherwise than`)
	for path, text := range pages(t) {
		if strings.Contains(path, "/history/") {
			continue
		}
		for _, found := range worn.FindAllString(block.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s: %q", path, found)
		}
	}
}
