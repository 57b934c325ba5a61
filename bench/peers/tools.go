package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
)

//go:embed tools.yaml
var toolsYAML []byte

// toolsName is the driver with the tools' recipes. It is only for installing.
const toolsName = "peers"

// noSystem is that driver's configuration.
type noSystem struct{}

func (noSystem) Validate() error { return nil }

func (noSystem) Open(context.Context, driver.Run) (driver.Conn, error) {
	return nil, fmt.Errorf("%w: the driver %s only installs tools", driver.ErrUnsupported, toolsName)
}

// tools returns the definition with which weir's installer finds the tools' recipes.
func tools() driver.Definition {
	return driver.Definition{
		Name: toolsName, Title: "Load tools", Summary: "The vendors' own load tools, to be installed.",
		New: func() driver.Config { return &noSystem{} }, Page: driver.Page{Recipe: toolsYAML},
	}
}

// A bench is a running server with the tools to load it.
type bench struct {
	self    string
	cache   string
	note    func(string)
	address string               // server address
	server  *broker.Installation // includes some tools
	tool    *broker.Installation // nil if the server's install includes the tool
	version string               // server version
	running *broker.Running
	dir     string // for files of the tools, until the system has been measured
	turn    int    // of the measured flow, from 1
}

// Limits of steps that are not measured.
const (
	installLimit = 20 * time.Minute
	startLimit   = 4 * time.Minute
	stopLimit    = time.Minute
)

// install returns where a recipe's programs are, and installs them if they are missing.
func (b *bench) install(ctx context.Context, def driver.Definition, recipe string) (*broker.Recipe, *broker.Installation, error) {
	r, err := broker.RecipeOf(def, recipe)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	in, err := broker.Ensure(ctx, broker.Installing{Self: b.self, Driver: def.Name, Recipe: r, Cache: b.cache, Note: b.note})
	return r, in, err
}

// start installs what a system needs and starts its server.
func (b *bench) start(ctx context.Context, s *system) error {
	registry, err := driver.NewRegistry(all.Definitions()...)
	if err != nil {
		return err
	}
	def, err := registry.Lookup(s.driver)
	if err != nil {
		return err
	}
	b.tool = nil
	if s.tool != "" {
		if _, b.tool, err = b.install(ctx, tools(), s.tool); err != nil {
			return err
		}
	}
	recipe, in, err := b.install(ctx, def, "")
	if err != nil {
		return err
	}
	b.server = in
	if b.dir, err = os.MkdirTemp("", "weir-peers-"); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	b.running, err = broker.StartSystem(starting, broker.Serving{Self: b.self, Definition: def, Recipe: recipe, Settings: s.settings, Cache: b.cache})
	if err != nil {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	b.address, b.version = b.running.Address[0], b.running.Version
	return nil
}

// stop ends the server, even if the run was interrupted.
func (b *bench) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(b.running.Stop(ctx), os.RemoveAll(b.dir))
}

// program returns the path of a program from an install, or of the host's own.
func program(in *broker.Installation, below, name string) string {
	if in.Dir != "" {
		p := filepath.Join(in.Dir, below, name)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	return name
}

// java returns a command that runs a class from an install's jars.
func java(in *broker.Installation, class string, args ...string) []string {
	return append([]string{"java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(in.Dir, "lib", "*"), class}, args...)
}
