module example.com/outside

go 1.26.0

require github.com/weirmq/weir v0.0.0

// In a repository of your own: go get github.com/weirmq/weir, without go.work and this.
replace github.com/weirmq/weir v0.0.0 => ../../..
