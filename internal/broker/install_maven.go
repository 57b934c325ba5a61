//go:build unix

package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mavenPlugin is the plugin that copies artifacts out of Maven's own cache.
const mavenPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:"

// A pom lists artifacts whose dependencies Maven resolves.
type pom struct {
	XMLName      xml.Name     `xml:"project"`
	Model        string       `xml:"modelVersion"`
	Group        string       `xml:"groupId"`
	Artifact     string       `xml:"artifactId"`
	Version      string       `xml:"version"`
	Packaging    string       `xml:"packaging"`
	Dependencies []dependency `xml:"dependencies>dependency"`
}

type dependency struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
	Version  string `xml:"version"`
}

// strict makes mvn reject artifacts without a matching checksum in the repository.
const strict = "--strict-checksums"

// maven downloads artifacts with all runtime dependencies into lib, and unpacks archives. It fails if
// the repository's checksum is missing or does not match (strict-checksums). A checksum in the recipe
// takes precedence.
func (j *job) maven(ctx context.Context, s *MavenSource) error {
	tool, err := j.host.look("mvn")
	if err != nil {
		return err
	}
	mvn := func(heard func(string), args ...string) error {
		j.far.begin(0, nil)
		defer j.far.end()
		all := []string{tool}
		if heard == nil {
			all = append(all, "--batch-mode", "--quiet", "--no-transfer-progress")
		}
		_, err := j.host.run(ctx, call{dir: j.work(), args: append(all, args...), heard: heard})
		return err
	}
	if len(s.Artifacts) > 0 {
		p := pom{Model: "4.0.0", Group: "weir", Artifact: j.recipe.Name, Version: "1", Packaging: "pom"}
		for _, a := range s.Artifacts {
			part := strings.Split(a, ":")
			p.Dependencies = append(p.Dependencies, dependency{part[0], part[1], part[2]})
		}
		b, err := xml.MarshalIndent(p, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(j.work(), "pom.xml"), b, 0o644); err != nil {
			return err
		}
		j.note("downloading %s and their dependencies", strings.Join(s.Artifacts, ", "))
		if err := mvn(nil, strict, mavenPlugin+"copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(j.out(), "lib")); err != nil {
			return err
		}
	}
	for i, a := range s.Archives {
		j.note("downloading %s", a)
		dir := filepath.Join(j.work(), fmt.Sprintf("archive-%d", i))
		checksums, want := strict, s.SHA256[a]
		if want != "" { // applies whatever the repository says
			checksums = "--lax-checksums"
		}
		if err := mvn(j.mavenSays, checksums, mavenPlugin+"copy", "-Dartifact="+a, "-DoutputDirectory="+dir); err != nil {
			return err
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			return errors.Join(fmt.Errorf("%s: mvn copied %d files (one)", a, len(files)), err)
		}
		if err := checkSum(filepath.Join(dir, files[0].Name()), want); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		j.note("unpacking %s", files[0].Name())
		if err := unpack(ctx, filepath.Join(dir, files[0].Name()), j.out()); err != nil {
			return err
		}
	}
	return nil
}

// mavenTells matches the progress line that mvn prints for a single download in interactive mode. For
// several downloads it does not print the total.
var mavenTells = regexp.MustCompile(`Progress \(1\): ([0-9.]+)(?: ([kMG]?B))?/([0-9.]+) ([kMG]?B)`)

// leastArchive is the size above which a file is taken for an archive of programs. Smaller files are
// parts of mvn itself.
const leastArchive = 1 << 20

// mavenSays parses the output of mvn.
func (j *job) mavenSays(text string) {
	all := mavenTells.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return
	}
	m := all[len(all)-1]
	if total := sized(m[3], m[4]); total >= leastArchive {
		j.far.progress(sized(m[1], cmp.Or(m[2], m[4])), total)
	}
}

// checkSum returns an error if the file's SHA-256 is not want, in hex; "" accepts any.
func checkSum(file, want string) error {
	if want == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("its SHA-256 is %s, and the recipe's is %s", got, want)
	}
	return nil
}
