package main

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

const (
	modulePath    = "github.com/workflows-engine/workflows-engine"
	moduleVersion = "v0.0.1"
)

// moduleProxy writes a module proxy with this module alone, of the files that git knows, and returns its folder.
func moduleProxy(t *testing.T, root string) string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "ls-files")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		t.Skipf("the files of the module are not known: %v", err)
	}
	files := strings.Fields(string(out))
	var nested []string // modules of their own below this one
	for _, file := range files {
		if folder, ok := strings.CutSuffix(file, "/go.mod"); ok {
			nested = append(nested, folder+"/")
		}
	}
	proxy := t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Create(filepath.Join(folder, moduleVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(packed)
	for _, file := range files {
		if slices.ContainsFunc(nested, func(below string) bool { return strings.HasPrefix(file, below) }) {
			continue
		}
		source, err := os.Open(filepath.Join(root, filepath.FromSlash(file)))
		if os.IsNotExist(err) { // deleted, but not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		entry, err := w.Create(modulePath + "@" + moduleVersion + "/" + file)
		if err == nil {
			_, err = io.Copy(entry, source)
		}
		source.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	info, _ := json.Marshal(map[string]string{"Version": moduleVersion, "Time": "2026-01-02T03:04:06Z"})
	for name, text := range map[string][]byte{moduleVersion + ".mod": mod, moduleVersion + ".info": info, "list": []byte(moduleVersion + "\n")} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// TestGoInstall installs the command line by its version from a module proxy, as a reader of the README will, and asks it for that version. What it
// depends on comes from the modules that have been downloaded.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	if !soak.On() || soak.UnderRace {
		t.Skip("compiling the module anew takes minutes: make release-check does it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloaded := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	folder := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "-modcacherw", modulePath+"/cmd/workflows-engine@"+moduleVersion)
	install.Dir = folder // outside of the module
	install.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOBIN="+folder, "GOMODCACHE="+filepath.Join(folder, "modules"),
		"GOPROXY=file://"+filepath.ToSlash(moduleProxy(t, root))+",file://"+filepath.ToSlash(downloaded), "GONOSUMDB=*", "GONOSUMCHECK=1", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := "workflows-engine"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, name), "version").Output()
	if err != nil || !strings.Contains(string(out), "workflows-engine 0.0.1") && !strings.Contains(string(out), "workflows-engine "+moduleVersion) {
		t.Errorf("%s, %v", out, err)
	}
}
