# What sluice.rb asks of Homebrew, for homebrew.sh: ruby homebrew_stand_in.rb FORMULA PREFIX FOLDER [mac]
# The resources lie in FOLDER, by the names that their URLs end with; it is worked in, too. The machine's own packages stand for those
# that the formula depends on, which are printed. With "mac" it is as on macOS, as far as that goes here: the project is configured for
# macOS in FOLDER/source/build, by a compiler that only has the name of one, and neither built nor tested.
require "digest"
require "fileutils"
require "open3"
require "pathname"

FORMULA, PREFIX, FOLDER = ARGV.first(3).map { |path| Pathname(File.expand_path(path)) }
MAC = ARGV[3] == "mac"
# What makes CMake write a project for macOS without a compiler for it, and find packages where this machine has them.
FOR_MACOS = %W[-DCMAKE_SYSTEM_NAME=Darwin -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_CXX_COMPILER_WORKS=1 -DCMAKE_INSTALL_NAME_TOOL=true
               -DCMAKE_LIBRARY_ARCHITECTURE=#{`cc -print-multiarch`.chomp}].freeze

class Pathname
  def /(other) = self + other.to_s
end

module OS
  def self.linux? = !MAC
  def self.mac? = MAC
end

# As fetched by Homebrew: checked, and unpacked without its topmost folder.
class Resource
  def initialize(&block) = instance_eval(&block)

  def url(value) = @url = value

  def sha256(value) = @sha256 = value

  def stage(target)
    file = @url.start_with?("file://") ? Pathname(@url.delete_prefix("file://")) : FOLDER / File.basename(@url)
    found = Digest::SHA256.file(file).hexdigest
    raise "#{file}: the checksum is #{found}, not #{@sha256}" if found != @sha256

    target.mkpath
    Kernel.system("tar", "-xzf", file.to_s, "-C", target.to_s, "--strip-components=1", exception: true)
  end
end

class Formula
  class << self
    attr_reader :resources, :source, :tests, :values

    def inherited(formula)
      super
      formula.instance_variable_set(:@resources, {})
      formula.instance_variable_set(:@values, {})
      @formula = formula
    end

    def formula = @formula

    [:desc, :homepage, :url, :sha256, :license].each { |name| define_method(name) { |value| @values[name] = value } }

    def depends_on(what) = puts("depends on #{what}")

    def on_linux = (yield unless MAC)

    def on_macos = (yield if MAC)

    def resource(name, &block) = @resources[name] = Resource.new(&block)

    def test(&block) = @tests = block
  end

  def initialize
    values = self.class.values
    @source = Resource.new do
      url values[:url]
      sha256 values[:sha256]
    end
  end

  def prefix = PREFIX

  def bin = prefix / "bin"

  def lib = prefix / "lib"

  def include = prefix / "include"

  def buildpath = FOLDER / "source"

  def testpath = FOLDER / "test"

  def version = self.class.values[:url][/-([0-9.]+)\.tar\.gz$/, 1]

  def resource(name) = self.class.resources.fetch(name)

  # Those of Homebrew that a project can notice. What the formula does not depend on is not found.
  def std_cmake_args
    %W[-DCMAKE_INSTALL_PREFIX=#{prefix} -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Release -DCMAKE_FIND_FRAMEWORK=LAST
       -DFETCHCONTENT_FULLY_DISCONNECTED=ON -Wno-dev -DBUILD_TESTING=OFF -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON]
  end

  def system(*command)
    command.map!(&:to_s)
    return Kernel.system(*command, exception: true) unless MAC

    puts command.join(" ")
    Kernel.system(*command, *FOR_MACOS, exception: true) if command[1] == "-S"
  end

  def shell_output(command)
    output, status = Open3.capture2(command)
    raise "#{command}: #{status}" unless status.success?

    output
  end

  def assert_equal(wanted, found) = wanted == found || raise("#{found.inspect} instead of #{wanted.inspect}")

  def assert_match(wanted, text) = text.match?(wanted.is_a?(String) ? Regexp.new(Regexp.escape(wanted)) : wanted) || raise("no #{wanted} in #{text}")

  def run
    @source.stage buildpath
    Dir.chdir(buildpath) { install }
    return if MAC

    testpath.mkpath
    Dir.chdir(testpath) { instance_eval(&self.class.tests) }
  end
end

def ENV.cc = fetch("CC", "cc")

# The variables hold text.
environment = ENV.method(:[]=)
ENV.define_singleton_method(:[]=) { |name, value| environment.call(name, value&.to_s) }

load FORMULA.to_s
formula = Formula.formula.new
raise "a formula needs a description, a page and a licence" unless [:desc, :homepage, :license].all? { |name| Formula.formula.values[name] }

formula.run
puts "installed #{formula.version}"
