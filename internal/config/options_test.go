package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// The table of docs/operations.md names every option by its flag and its variable, with its default, and nothing else.
func TestOptionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n| flag | variable")
	text, _, _ = strings.Cut(text, "\n\n")
	inCode := regexp.MustCompile("`([^`]+)`")
	rows := map[string]string{} // by flag or variable
	for _, line := range strings.Split(text, "\n")[2:] {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "/"), "|")
		for _, m := range inCode.FindAllStringSubmatch(cells[1]+cells[2], -1) {
			name, _, _ := strings.Cut(m[1], " ")
			if strings.HasPrefix(name, "--") || name == strings.ToUpper(name) {
				rows[strings.TrimSuffix(name, ",")] = line
			}
		}
	}
	for _, o := range options {
		row, ok := rows[strings.TrimPrefix(o.variable, envname.Prefix)]
		if !ok {
			t.Errorf("no row has the variable %s", o.variable)
		}
		delete(rows, strings.TrimPrefix(o.variable, envname.Prefix))
		if o.flag == "" {
			continue
		}
		if rows["--"+o.flag] != row {
			t.Errorf("the row of %s has not the flag --%s", o.variable, o.flag)
		}
		delete(rows, "--"+o.flag)
		if o.fallback != "" && o.shown == "" && !strings.Contains(row, "`"+strings.TrimSuffix(o.fallback, "0s")+"`") && !strings.Contains(row, "`"+o.fallback+"`") {
			t.Errorf("the row of --%s has not the default %s", o.flag, o.fallback)
		}
	}
	for _, name := range []string{"--db", "--token-file"} { // a short form, and a flag of the server alone
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s is no option", name)
	}
}

// Every option is read by its group, and its help tells its default and its variable.
func TestOptions(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	RegisterServer(set)
	var names, variables []string
	for _, o := range options {
		if o.variable == "" || slices.Contains(variables, o.variable) || o.flag != "" && slices.Contains(names, o.flag) {
			t.Errorf("%s, %s: without a variable, or twice", o.flag, o.variable)
		}
		variables, names = append(variables, o.variable), append(names, o.flag)
		if (o.load == nil) != (o.group == ofUse) {
			t.Errorf("%s: group %b", o.variable, o.group)
		}
		if o.flag == "" {
			continue
		}
		f := set.Lookup(o.flag)
		if f == nil || !strings.HasSuffix(f.Usage, "$"+o.variable+")") || o.fallback != "" && !strings.Contains(f.Usage, "(default ") {
			t.Errorf("%s: %+v", o.flag, f)
		}
	}
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(names, f.Name) {
			t.Errorf("--%s is not an option", f.Name)
		}
	})
}
