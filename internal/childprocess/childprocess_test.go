package childprocess_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows programs get other variables, and their names do not tell cases apart")
	}
	engine := []string{"PATH=/bin", "HOME=/h", "API_KEY=k", "PATHS=x", "USER=() { evil; }", "broken", "TERM="}
	got := childprocess.Environment(engine, map[string]string{"B": "2", "A": "1", "HOME": "/own"})
	if want := []string{"PATH=/bin", "HOME=/h", "TERM=", "A=1", "B=2", "HOME=/own"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := childprocess.Environment(nil, nil); got == nil || len(got) > 0 {
		t.Errorf("nothing is %v: nil would be the engine's whole environment", got)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	secret := func(reference string) (string, error) {
		if reference == "env:NONE" {
			return "", errors.New("the variable is unset")
		}
		return "<" + reference + ">", nil
	}
	values, secrets, err := childprocess.Resolve(map[string]string{
		"A": "plain", "B": " env:X", "C": "file:y/z", "D": "a ${env:P} b ${env:Q}", "E": "literal:env:X", "F_TOKEN": "t", "G": "literal:",
	}, secret)
	want := map[string]string{
		"A": "plain", "B": "<env:X>", "C": "<file:y/z>", "D": "a <env:P> b <env:Q>", "E": "env:X", "F_TOKEN": "t", "G": "",
	}
	if err != nil || !reflect.DeepEqual(values, want) {
		t.Errorf("%v, %v", values, err)
	}
	if want := []string{"<env:X>", "<file:y/z>", "<env:P>", "<env:Q>", "t"}; !slices.Equal(secrets, want) {
		t.Errorf("secrets %q, want %q", secrets, want)
	}
	for _, resolver := range []func(string) (string, error){nil, secret} {
		_, _, err := childprocess.Resolve(map[string]string{"A": "env:NONE"}, resolver)
		if !errors.Is(err, problem.UsageError) || !strings.Contains(err.Error(), `"A"`) {
			t.Errorf("unresolved: %v", err)
		}
	}
}

func TestScrubber(t *testing.T) {
	t.Parallel()
	s := childprocess.NewScrubber([]string{"abc", "secret", "secret-long", "secret", ""})
	if got, want := s.Scrub("abc secret-long secret"), "abc [REDACTED] [REDACTED]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := childprocess.Scrubber(nil).Scrub("x"); got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := childprocess.Start(childprocess.Program{Command: t.TempDir() + "/none"}, &childprocess.Tail{}, nil)
	if err == nil {
		t.Error("a program that is not there was started")
	}
}

// TestStartSaysWhatIsMissing: the program, or the folder that it is to run in.
func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command, directory, want string
		absent                   string
	}{
		{here, filepath.Join(folder, "gone"), "its working directory", here},
		{here, file, "its working directory", here},
		{filepath.Join(folder, "none"), folder, "none", "working directory"},
	} {
		_, err := childprocess.Start(childprocess.Program{Command: tt.command, Directory: tt.directory}, &childprocess.Tail{}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), tt.absent) {
			t.Errorf("%s in %s: %v", tt.command, tt.directory, err)
		}
	}
}
