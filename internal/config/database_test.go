package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestOneDatabaseForAll opens the default database in a shell that has XDG_DATA_HOME set and in a host that has not, in
// either order, with every mixture of databases that earlier versions may have left: both find the same file, no file that
// is there is passed over for a new one, and where there are two a warning names both.
func TestOneDatabaseForAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		home, xdg bool // which databases are there
		want      string
		warned    bool
	}{
		{"none", false, false, "home", false},
		{"at home", true, false, "home", false},
		{"below XDG_DATA_HOME", false, true, "xdg", false},
		{"both", true, true, "home", true},
	} {
		for _, goos := range []string{"linux", "darwin"} {
			for _, first := range []string{"shell", "host"} {
				if c.want == "xdg" && first == "host" {
					continue // a host cannot know of XDG_DATA_HOME before a shell has left its note
				}
				t.Run(c.name+" "+goos+" "+first, func(t *testing.T) {
					t.Parallel()
					folder := t.TempDir()
					data := filepath.Join(folder, ".local", "share")
					if goos == "darwin" {
						data = filepath.Join(folder, "Library", "Application Support")
					}
					paths := map[string]string{
						"home": filepath.Join(data, "workflows-engine", "runs.db"),
						"xdg":  filepath.Join(folder, "xdg", "workflows-engine", "runs.db"),
					}
					for which, there := range map[string]bool{"home": c.home, "xdg": c.xdg} {
						if there {
							touch(t, paths[which])
						}
					}
					shell := environment("XDG_DATA_HOME=" + filepath.Join(folder, "xdg"))
					host := environment()
					for range 2 {
						for _, who := range []string{first, map[string]string{"shell": "host", "host": "shell"}[first]} {
							env := host
							if who == "shell" {
								env = shell
							}
							env.GOOS, env.Home = goos, folder
							config, err := load(t, env)
							if err != nil {
								t.Fatal(err)
							}
							if config.StorePath != paths[c.want] {
								t.Errorf("%s: %s, want %s", who, config.StorePath, paths[c.want])
							}
							warned := strings.Contains(strings.Join(config.Warnings, "\n"), paths["xdg"])
							if warned != (c.warned && who == "shell") {
								t.Errorf("%s: warnings %q", who, config.Warnings)
							}
							store, err := config.OpenStore(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							store.Close()
						}
					}
				})
			}
		}
	}
}

// TestNotes: a note that leads nowhere is refused instead of a new database being made, and a note that is not needed any
// longer does no harm.
func TestNotes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	env := environment()
	env.Home = folder
	home := filepath.Join(folder, ".local", "share", "workflows-engine", "runs.db")
	elsewhere := filepath.Join(folder, "elsewhere.db")
	touch(t, home+".location")
	for text, want := range map[string]string{"": "an absolute path", "runs.db": "an absolute path", elsewhere: "database " + elsewhere + " not found"} {
		if err := os.WriteFile(home+".location", []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(t, env)
		if e, ok := problem.As(err); !ok || !errors.Is(err, problem.UsageError) || !strings.Contains(e.Error(), want) || !strings.Contains(e.Hint, "delete") {
			t.Errorf("%q: %v", text, err)
		}
	}
	touch(t, elsewhere)
	if err := os.WriteFile(home+".location", []byte(elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := load(t, env); err != nil || c.StorePath != elsewhere || c.OtherStorePath != "" {
		t.Errorf("%+v %v", c, err)
	}
	touch(t, home)
	if c, err := load(t, env); err != nil || c.StorePath != home || c.OtherStorePath != elsewhere || len(c.Warnings) != 1 {
		t.Errorf("%+v %v", c, err)
	}
	env.Home, env.Variables = "", []string{"XDG_DATA_HOME=" + folder}
	if c, err := load(t, env); err != nil || c.StorePath != filepath.Join(folder, "workflows-engine", "runs.db") {
		t.Errorf("without a home folder: %+v %v", c, err)
	}
}

// touch makes an empty file and its folder.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
