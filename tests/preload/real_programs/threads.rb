# Threads, ractors, fibers, forked children and a compacting collector in Ruby. Prints only what must be the same each
# time. Open it with workload_ruby of real_workloads_languages.sh.
require "digest/sha2" # and not when threads first use it: loading it is no matter for several at once
require "json"
require "zlib"

Warning[:experimental] = false

def work(seed)
  table = Hash.new { |hash, key| hash[key] = [] }
  4000.times { |i| table["key#{i * seed % 997}"] << "value #{i}" * (i % 5) }
  text = JSON.generate(table.sort.to_h)
  packed = Zlib::Deflate.deflate(text, 3)
  raise "different" unless Zlib::Inflate.inflate(packed) == text && JSON.parse(text) == table
  words = text.scan(/key\d+/).tally.size
  "#{seed} #{words} #{Digest::SHA256.hexdigest(text)[0, 16]} #{text.gsub(/(\d)(\d)/, '\2\1').sum}"
end

results = (1..6).map { |seed| Thread.new { work(seed) } }.map(&:value)
puts results
ractors = (7..9).map { |seed| Ractor.new(seed) { |n| (1..3000).map { |i| "#{i * n}" * (i % 9) }.sum(&:size) } }
puts ractors.map(&:take).inspect

objects = Array.new(60_000) { |i| i.even? ? "object #{i}" : [i, "#{i}"] }
objects.each_index { |i| objects[i] = nil unless (i % 7).zero? }
3.times { GC.compact }
puts objects.compact.size, objects.compact.hash == objects.compact.hash
GC.stress = true
puts (1..40).map { |i| "s#{i}" * i }.join.size
GC.stress = false
GC.verify_compaction_references(toward: :empty)
puts objects.compact.first(3).inspect

fibers = (1..200).map { |n| Fiber.new { 20.times { |i| Fiber.yield "f" * (n + i) } } }
puts 20.times.sum { fibers.sum { |fiber| fiber.resume.size } }

busy = Thread.new { loop { work(11) } }
answers = (1..6).map do |seed|
  reader, writer = IO.pipe
  child = fork do
    reader.close
    GC.compact
    writer.write(work(seed))
    exit!(seed)
  end
  writer.close
  answer = reader.read
  Process.wait(child)
  "#{$?.exitstatus} #{answer == results[seed - 1]}"
end
busy.kill
puts answers, `echo from a child`
