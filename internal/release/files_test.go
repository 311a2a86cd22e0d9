package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/macho"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

var testSource = source{version: "1.2.3-rc.1", commit: "abc", date: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}

// fakeBuild are programs for all platforms that cannot be run.
func fakeBuild() map[target][]entry {
	cpus := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}
	built := map[target][]entry{}
	for _, t := range targets {
		data := []byte("program for " + t.String())
		if t.os == "darwin" { // a header without commands
			header := macho.FileHeader{Magic: macho.Magic64, Cpu: cpus[t.arch], SubCpu: 3, Type: macho.TypeExec}
			data, _ = binary.Append(nil, binary.LittleEndian, header)
			data = append(data, "\x00\x00\x00\x00program for "+t.String()...)
		}
		for _, name := range programs {
			built[t] = append(built[t], entry{t.file(name), program, data})
		}
	}
	return built
}

var license0 = []entry{{"LICENSE", plain, []byte("licence")}, {"README.md", plain, []byte("read me")}}

// TestSameBytes: neither the order of entries nor the zone of the date changes an archive.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	entries := []entry{{"b", program, []byte("2")}, {"a/x", plain, []byte("1")}, {"c", plain, nil}}
	other := slices.Clone(entries)
	slices.Reverse(other)
	for name, pack := range map[string]func(time.Time, []entry) ([]byte, error){"tar.gz": tarball, "zip": zipped} {
		first, err := pack(testSource.date, entries)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pack(testSource.date.In(time.FixedZone("", 3600)), other)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: two archives of the same files differ; %v", name, err)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	if got, err := choose(""); err != nil || len(got) != 6 {
		t.Errorf("all: %v, %v", got, err)
	}
	if got, err := choose("linux/arm64,linux/arm64"); err != nil || !slices.Equal(got, []target{{"linux", "arm64"}}) {
		t.Errorf("one: %v, %v", got, err)
	}
	if _, err := choose("plan9/386"); err == nil || !strings.Contains(err.Error(), "plan9/386") {
		t.Errorf("unknown: %v", err)
	}
}

func TestSourceFromVariables(t *testing.T) {
	t.Parallel()
	read := func(version, epoch string) (source, error) {
		return readSource(func(name string) string {
			return map[string]string{"VERSION": version, "COMMIT": "abc", "SOURCE_DATE_EPOCH": epoch}[name]
		})
	}
	s, err := read("v1.2.3", "1767323046")
	if want := (source{"1.2.3", "abc", testSource.date}); err != nil || s != want {
		t.Errorf("got %v, %v; want %v", s, err, want)
	}
	for _, tt := range [][2]string{{"1.2", "0"}, {"01.2.3", "0"}, {"1.2.3 -X x", "0"}, {"1.2.3", "today"}} {
		if s, err := read(tt[0], tt[1]); err == nil {
			t.Errorf("%q: accepted as %v", tt, s)
		}
	}
}

// TestForeignFolder: a folder that no release has made is not emptied.
func TestForeignFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "thesis.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := empty(folder); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestThePackagedReadmeIsForItsReaders: they have neither Go nor this repository, and the definitions that it names.
func TestThePackagedReadmeIsForItsReaders(t *testing.T) {
	t.Chdir("../..")
	common, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := examples()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range common {
		if e.name == "README.md" {
			text = string(e.data)
		}
	}
	if regexp.MustCompile(`\bgo (run|build|install|test)\b|\]\((\w|\.)+/`).MatchString(text) {
		t.Errorf("the README has commands of Go, or links into the repository:\n%s", text)
	}
	named := regexp.MustCompile(`examples/\S+`).FindAllString(text, -1)
	if len(named) == 0 {
		t.Error("the README names no example")
	}
	for _, name := range named {
		if !slices.ContainsFunc(packed, func(e entry) bool { return e.name == name }) {
			t.Errorf("%s is not packed", name)
		}
	}
}

// TestAStoppedReleaseLeavesNothing: the build that a signal ends removes its folder.
func TestAStoppedReleaseLeavesNothing(t *testing.T) {
	t.Chdir("../..")
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	ctx, stop := context.WithCancel(t.Context())
	built := make(chan error, 1)
	go func() {
		_, _, err := testSource.build(ctx, targets[:1])
		built <- err
	}()
	for {
		if made, err := filepath.Glob(filepath.Join(folder, "release-*")); err != nil || len(made) > 0 {
			break
		}
		runtime.Gosched()
	}
	stop()
	if err := <-built; err == nil {
		t.Error("it was built in spite of the end of the context")
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestUniversal(t *testing.T) {
	t.Parallel()
	built := fakeBuild()
	arm, amd := built[target{"darwin", "arm64"}][0].data, built[target{"darwin", "amd64"}][0].data
	data, err := universal([][]byte{amd, arm})
	if err != nil {
		t.Fatal(err)
	}
	fat, err := macho.NewFatFile(bytes.NewReader(data))
	if err != nil || len(fat.Arches) != 2 {
		t.Fatalf("%v, %v", fat, err)
	}
	for i, want := range [][]byte{amd, arm} {
		a := fat.Arches[i]
		if a.Offset%(1<<14) != 0 || !bytes.Equal(data[a.Offset:a.Offset+a.Size], want) {
			t.Errorf("part %d: %+v", i, a.FatArchHeader)
		}
	}
	if _, err := universal([][]byte{[]byte("#!/bin/sh")}); err == nil {
		t.Error("a script was taken for a program")
	}
}

// conforms checks a JSON text against a schema in testdata.
func conforms(t *testing.T, schema string, text []byte) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", schema))
	if err != nil {
		t.Fatal(err)
	}
	var rules, value any
	if err := json.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	compiled, err := jsonschema.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if found := compiled.Validate(value); len(found) > 0 {
		t.Errorf("%s: %s\n%s", schema, jsonschema.Text(found), text)
	}
}

// TestBundle: the manifest keeps the rules of the specification, and what it names is in the bundle and can be started.
func TestBundle(t *testing.T) {
	t.Parallel()
	bundle, err := testSource.bundle(targets, fakeBuild(), license0)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(bundle.data), int64(len(bundle.data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*zip.File{}
	for _, f := range z.File {
		files[f.Name] = f
	}
	r, err := files["manifest.json"].Open()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, "mcpb-manifest.schema.json", text)
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	commands := []string{"${__dirname}/" + m.Server.EntryPoint, m.Server.Config.Command}
	for _, platform := range m.Compatibility["platforms"] {
		if o, ok := m.Server.Config.Overrides[platform]; ok {
			commands = append(commands, o.Command)
		} else if platform != "darwin" {
			t.Errorf("%s starts what macOS starts", platform)
		}
	}
	for _, command := range commands {
		name, _ := strings.CutPrefix(command, "${__dirname}/")
		if f := files[name]; f == nil || f.Mode()&0o111 == 0 {
			t.Errorf("%s is not a program in the bundle: %v", command, f)
		}
	}
	for name := range m.UserConfig {
		if n := strings.Count(string(text), "${user_config."+name+"}"); n != 1 {
			t.Errorf("user_config.%s is used %d times", name, n)
		}
	}
	if n := strings.Count(string(text), "${user_config."); n != len(m.UserConfig) || !m.UserConfig["model_key"].Sensitive {
		t.Errorf("%d uses of %v", n, m.UserConfig)
	}
}

// TestRegistryEntry: server.json keeps the rules of the registry, and its names are those of the packages.
func TestRegistryEntry(t *testing.T) {
	t.Parallel()
	bundle := entry{"workflows-engine_1.2.3-rc.1.mcpb", plain, []byte("bundle")}
	file, err := testSource.registry(bundle)
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, "server.schema.json", file.data)
	var r registryEntry
	if err := json.Unmarshal(file.data, &r); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(bundle.data)); r.Packages[1].SHA256 != want || !strings.HasSuffix(r.Packages[1].Identifier, "/v1.2.3-rc.1/"+bundle.name) {
		t.Errorf("bundle: %+v", r.Packages[1])
	}
	packages, err := testSource.packages(targets, fakeBuild(), license0, nil)
	if err != nil || len(packages) != 8 {
		t.Fatalf("%d packages, %v", len(packages), err)
	}
	i := slices.IndexFunc(packages, func(e entry) bool { return e.name == "npm/"+r.Packages[0].Identifier+"-1.2.3-rc.1.tgz" })
	if i < 0 {
		t.Fatalf("no package %s", r.Packages[0].Identifier)
	}
}

// TestGoreleaserMakesTheSame: .goreleaser.yaml has the same platforms, names, stamps and files.
func TestGoreleaserMakesTheSame(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Builds []struct {
			Binary              string
			Env, Flags, Ldflags []string
			GoOS, GoArch        []string
			ModTimestamp        string `yaml:"mod_timestamp"`
		}
		Archives []struct {
			NameTemplate string `yaml:"name_template"`
			Wrap         bool   `yaml:"wrap_in_directory"`
			Files        []struct{ Src string }
		}
		Sboms    []struct{ Documents []string }
		Checksum struct {
			NameTemplate string `yaml:"name_template"`
		}
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Builds) != len(programs) || len(c.Archives) != 1 || len(c.Sboms) != 1 || !c.Archives[0].Wrap {
		t.Fatalf("%+v", c)
	}
	const stamp = "github.com/workflows-engine/workflows-engine/internal/buildstamp"
	for i, b := range c.Builds {
		var made []target
		for _, system := range b.GoOS {
			for _, arch := range b.GoArch {
				made = append(made, target{system, arch})
			}
		}
		flags := strings.Join(append(b.Ldflags, b.Flags...), " ")
		for _, want := range []string{"-trimpath", "-buildvcs=false", "-X " + stamp + ".version={{ .Version }}", "-X " + stamp + ".commit={{ .FullCommit }}", "-X " + stamp + ".date={{ .CommitDate }}"} {
			if !strings.Contains(flags, want) {
				t.Errorf("%s: no %s in %s", b.Binary, want, flags)
			}
		}
		if b.Binary != programs[i] || !slices.Equal(made, targets) || !slices.Contains(b.Env, "CGO_ENABLED=0") || b.ModTimestamp == "" {
			t.Errorf("%+v", b)
		}
	}
	fill := strings.NewReplacer("{{ .ProjectName }}", "workflows-engine", "{{ .Binary }}", "workflows-engine", "{{ .Version }}", "1.2.3-rc.1", "{{ .Os }}", "linux", "{{ .Arch }}", "arm64")
	want := testSource.name("workflows-engine", target{"linux", "arm64"})
	for template, want := range map[string]string{
		c.Archives[0].NameTemplate: want, c.Sboms[0].Documents[0]: want + ".cdx.json", c.Checksum.NameTemplate: "workflows-engine_1.2.3-rc.1_checksums.txt",
	} {
		if got := fill.Replace(template); got != want {
			t.Errorf("%s makes %s, want %s", template, got, want)
		}
	}
	var files []string
	for _, f := range c.Archives[0].Files {
		files = append(files, f.Src)
	}
	if !slices.Equal(files, []string{"LICENSE", "internal/release/npm/README.md", "THIRD_PARTY_LICENSES.md", "examples/*/*.workflow.*", "completions/*"}) {
		t.Errorf("files: %v", files)
	}
}
