package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opens lists the files that may open files by themselves, with the reason. All others use internal/regularfile.
var opens = map[string]string{
	"internal/cli/read.go":                        "reads pipes too, until the command is interrupted",
	"internal/cli/new.go":                         "makes files that must not exist",
	"internal/mcphost/file.go":                    "makes copies that must not exist",
	"internal/doctor/database.go":                 "asks whether a database may be written to, which no pipe keeps waiting",
	"history/historypg/pgtest/server.go":          "keeps the log of a server for tests",
	"history/historysql/backup.go":                "makes copies that must not exist, and flushes them",
	"history/historysql/file.go":                  "makes a database that must not exist",
	"history/internal/storeclock/uptime_linux.go": "reads /proc",
	"internal/childprocess/session_linux.go":      "reads /proc",
	"internal/leaktest/running_unix.go":           "reads /proc",
	"internal/processid/processid_linux.go":       "reads /proc",
}

// TestFilesAreOpenedInOnePlace: a file that was looked at may be another one when it is opened, and opening a pipe waits for its writer.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	t.Parallel()
	banned := []string{"Open", "OpenFile", "ReadFile", "DirFS"}
	used, files := map[string]bool{}, 0
	for _, p := range list(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if room == "internal/regularfile" || room == "internal/release" || room == "internal/supply" || strings.HasSuffix(room, "/live") {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file := filepath.ToSlash(filepath.Join(room, filepath.Base(path)))
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files++
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := call.X.(*ast.Ident); !ok || x.Name != "os" || x.Obj != nil || !slices.Contains(banned, call.Sel.Name) {
					return true
				}
				used[file] = true
				if opens[file] == "" {
					t.Errorf("%s: os.%s: open it by internal/regularfile", fset.Position(n.Pos()), call.Sel.Name)
				}
				return true
			})
		}
	}
	for file := range opens {
		if !used[file] {
			t.Errorf("%s opens no file by itself: take it out of the list", file)
		}
	}
	if files < 300 {
		t.Fatalf("only %d files read", files)
	}
}
