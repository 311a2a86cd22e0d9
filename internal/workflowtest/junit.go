package workflowtest

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

type junitSuites struct {
	XMLName  xml.Name      `xml:"testsuites"`
	Tests    int           `xml:"tests,attr"`
	Failures int           `xml:"failures,attr"`
	Suites   []*junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit is a report in JUnit's XML, one suite a file. Text describes the failure of a test.
func JUnit(results []*Result, text func(*Result) string) ([]byte, error) {
	all := junitSuites{}
	suites := map[string]*junitSuite{}
	for _, r := range results {
		path := filepath.ToSlash(r.File.Path)
		s := suites[path]
		if s == nil {
			s = &junitSuite{Name: path}
			suites[path], all.Suites = s, append(all.Suites, s)
		}
		c := junitCase{Name: r.Test.Name, Class: path, File: path, Line: r.Test.Place.Line, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
		all.Tests++
		s.Tests++
		if !r.Passed() {
			all.Failures++
			s.Failures++
			f := &junitFailure{Text: text(r)}
			f.Message, _, _ = strings.Cut(strings.TrimSpace(f.Text), "\n")
			c.Failure = f
		}
		s.Cases = append(s.Cases, c)
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(out, '\n')...), nil
}
