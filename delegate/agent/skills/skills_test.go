package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/skills"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type object = map[string]any

func write(t testing.TB, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

var shelf = map[string]string{
	"memo-style/SKILL.md":         "---\nname: memo-style\ndescription: >\n  How memos\n  are written.\nlicense: none\n---\n\nWrite three lines.\n",
	"memo-style/pages/letters.md": "Begin with Dear.\n",
	"memo-style/pages/legal.md":   "Cite the law.\n",
	"memo-style/pages/notes.txt":  "no page",
	"refunds/SKILL.md":            "\ufeff---\r\ndescription: When money is paid back.\r\n---\r\nNever above 20.\r\n",
}

func TestSkills(t *testing.T) {
	t.Parallel()
	set := enginetest.Must(enginetest.Must(skills.New(write(t, shelf))).Tools([]string{"memo-style", "refunds"}))
	prompt := enginetest.Must(set.Prompt())
	if want := "Skills. Before you do something that one of them is about, read it with read_skill:\n- memo-style: How memos are written.\n- refunds: When money is paid back."; prompt != want {
		t.Errorf("%q", prompt)
	}
	listed := enginetest.Must(set.Tools(t.Context()))
	if len(listed) != 1 || listed[0].Name != skills.Read || !listed[0].ReadOnly || !listed[0].Parallel || listed[0].OnCrash != agent.Repeat {
		t.Errorf("%+v", listed)
	}
	for _, c := range []struct {
		arguments, want object
		code            string
	}{
		{object{"skill": "memo-style"}, object{"skill": "memo-style", "text": "Write three lines.", "pages": []any{"legal", "letters"}}, ""},
		{object{"skill": "refunds"}, object{"skill": "refunds", "text": "Never above 20."}, ""},
		{object{"skill": "memo-style", "page": "letters"}, object{"skill": "memo-style", "page": "letters", "text": "Begin with Dear.\n"}, ""},
		{object{"skill": "memo-stile"}, nil, `SKILL_UNKNOWN: there is no skill "memo-stile" here; did you mean "memo-style"?`},
		{object{"skill": "memo-style", "page": "leter"}, nil, `SKILL_UNKNOWN: skill "memo-style" has no page "leter"; did you mean "letters"?`},
		{object{"skill": "memo-style", "page": "notes"}, nil, `SKILL_UNKNOWN: skill "memo-style" has no page "notes"; there is legal and letters`},
		{object{"skill": "memo-style", "page": "../SKILL"}, nil, `SKILL_UNKNOWN: skill "memo-style" has no page "../SKILL"; there is legal and letters`},
		{object{"skill": "refunds", "page": ""}, nil, `SKILL_UNKNOWN: skill "refunds" has no page ""; there is none`},
		{object{"skill": "../memo-style"}, nil, `SKILL_UNKNOWN: there is no skill "../memo-style" here; did you mean "memo-style"?`},
		{object{}, nil, `SKILL_UNKNOWN: there is no skill "" here; there is memo-style and refunds`},
	} {
		out, err := set.Call(t.Context(), agent.Call{Name: skills.Read, Arguments: c.arguments})
		got := ""
		if failure, ok := errors.AsType[*activities.Failure](err); ok {
			got = failure.Code + ": " + failure.Message
		}
		if got != c.code || c.want != nil && !jsonvalue.Equal(out, c.want) {
			t.Errorf("%v: %v, %s", c.arguments, out, got)
		}
	}
	less, missing := set.Narrow([]string{"refunds", "other"})
	if text := enginetest.Must(less.(agent.Prompter).Prompt()); strings.Contains(text, "memo") || !strings.Contains(text, "refunds") || len(missing) != 1 || missing[0] != "other" {
		t.Errorf("%q, %q", text, missing)
	}
	if _, err := less.Call(t.Context(), agent.Call{Name: skills.Read, Arguments: object{"skill": "memo-style"}}); err == nil {
		t.Error("a skill that the node has left out is read")
	}
	none, _ := set.Narrow(nil)
	if listed := enginetest.Must(none.Tools(t.Context())); len(listed) != 0 || enginetest.Must(none.(agent.Prompter).Prompt()) != "" {
		t.Errorf("%v", listed)
	}
}

// A skill that cannot be used is refused when the agents are made, with the reason.
func TestSkillsRefused(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{
		"plain/SKILL.md": "Just text.\n", "open/SKILL.md": "---\ndescription: x\n", "yaml/SKILL.md": "---\ndescription: [\n---\n", "other/SKILL.md": "---\nname: another\ndescription: x\n---\n",
		"mute/SKILL.md": "---\nname: mute\n---\ntext", "long/SKILL.md": "---\ndescription: " + strings.Repeat("x", 2000) + "\n---\n", "big/SKILL.md": "---\ndescription: x\n---\n" + strings.Repeat("x", 10<<20),
		"latin/SKILL.md": "---\ndescription: \xfc\n---\n", "empty/x": "", "dir/SKILL.md/x": "", "bomb/SKILL.md": "---\na: &a [x,x]\nb: &b [*a,*a]\ndescription: fine\n---\n", ".hidden/SKILL.md": "---\ndescription: x\n---\n",
	})
	outside := write(t, shelf)
	for link, to := range map[string]string{"away": filepath.Join(outside, "refunds"), "linked/SKILL.md": filepath.Join(outside, "refunds", "SKILL.md")} {
		link = filepath.Join(folder, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
	}
	library := enginetest.Must(skills.New(folder))
	for name, want := range map[string]string{
		"plain": "does not begin with its name", "open": "does not begin with its name", "yaml": "is not YAML", "other": `calls itself "another"`, "mute": "needs a description",
		"long": "needs a description", "big": "is larger than 256 KiB", "latin": "is not text in UTF-8", "empty": "no such file", "dir": "is not a file", "gone": `there is no skill "gone"`,
		"away": "there is no skill", "linked": "cannot be read", ".hidden": "there is no skill", "..": "there is no skill", "": "there is no skill", "a/b": "there is no skill", "bomb": "",
	} {
		_, err := library.Tools([]string{name})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, problem.AgentConfigInvalid)) || err != nil && strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := skills.New(filepath.Join(folder, "gone")); err == nil {
		t.Error("a folder that is not there is taken")
	}
}
